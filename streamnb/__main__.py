"""The command `streamnb`, also ``python -m streamnb``."""

from __future__ import annotations

import signal
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; while its modules are imported, Ctrl-C ends the process without a traceback."""
    catches_ctrl_c = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if catches_ctrl_c:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from streamnb.cli import main as run

    if catches_ctrl_c:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
