"""The loop: poll, decode, score, learn, publish, snapshot, commit."""
