"""From evidence to the posterior."""
