"""``python -m streamnb``."""

from streamnb.cli import main

if __name__ == "__main__":
    main()
