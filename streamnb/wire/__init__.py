"""From bytes to messages, from scores to bytes."""
