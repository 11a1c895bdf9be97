"""From TOML to settings to parts."""
