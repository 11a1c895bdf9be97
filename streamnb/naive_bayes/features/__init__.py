"""From text and values to tokens and numbers."""
