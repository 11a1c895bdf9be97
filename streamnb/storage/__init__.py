"""Whatever touches a disk."""
