"""Checks of a file to write, before the work whose result it will hold."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from streamnb.storage.os_errors import translated


def check_new(path: Path) -> None:
    """Check that a file can be made.

    Raises
    ------
    PathError
        The name exists already, or its directory does not exist or may not be written.
    """
    with translated("write", path):
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    check_directory(path)


def check_directory(path: Path) -> None:
    """Check that the directory of a file exists and may be written.

    Raises
    ------
    PathError
        It does not, or may not.
    """
    with translated("write", path):
        if not path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if not os.access(path.parent, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
