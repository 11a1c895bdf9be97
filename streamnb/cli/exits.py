"""How a command ends: with its exit code and at most one sentence on standard error, never with a traceback.

Every way out passes through `exit_code`: an error that names its code, a full or closed standard output, a
memory limit, a refusal of the operating system, and a defect, whose traceback goes into a file.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from streamnb.errors import DefectError, StorageError, StreamnbError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

INTERRUPTED = 130  # as a shell reports a process that Ctrl-C has ended
_LOW_MEMORY = ("failed to map segment", "can't start new thread")  # a library, a thread that found no memory


def exit_code(command: Callable[[], object]) -> int:
    """Run a command, print its error as one line on standard error, and return its exit code.

    Parameters
    ----------
    command : callable
        It may end by `SystemExit`.
    """
    try:
        _open_standard_streams()
        try:
            command()
            code: object = 0
        except SystemExit as ended:
            code = ended.code or 0
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last handler there is
        return _report(error)
    return code if isinstance(code, int) else DefectError.exit_code


class _Output(io.FileIO):
    """Standard output whose failures are a `StorageError`, whatever prints to it."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            from streamnb.storage import output_error

            raise output_error("standard output", error) from error


def _open_standard_streams() -> None:
    """Give standard output its own errors, and open the null device in place of closed streams.

    Without this, the next file that is opened would get the number of a closed stream, and be written to by
    whatever prints. The null device is opened the other way round, so that its use is an error, except as
    standard error.
    """
    for number, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            from streamnb.storage import replace_by_null

            replace_by_null(number, mode)
    raw = _Output(1, "w", closefd=False)
    # A file name or an argument may hold bytes that are not text.
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw), "utf-8", errors="backslashreplace", line_buffering=raw.isatty()
    )
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", errors="backslashreplace", closefd=False)


def _report(error: Exception) -> int:
    """Print an error as one line, and return its exit code."""
    from streamnb.storage import replace_by_null

    known = error if isinstance(error, StreamnbError) else _translated(error)
    try:
        sys.stdout.flush()
    except StreamnbError:
        replace_by_null(1)
    if known.exit_code:
        try:
            print(f"streamnb: {known}", file=sys.stderr, flush=True)
        except OSError:  # it is full as well: the code is all that can be passed on
            replace_by_null(2)
    return known.exit_code


def _translated(error: Exception) -> StreamnbError:
    """Return an unexpected exception as an error with an exit code."""
    if isinstance(error, MemoryError) or any(words in str(error) for words in _LOW_MEMORY):
        return StorageError(
            "The memory that this process may use is full.",
            "Raise its limit (see `ulimit -v`, or the container's), or lower `model.bytes_max`.",
        )
    if isinstance(error, OSError):
        return StorageError(f"The operating system refused: {error}.", "Correct that and start again.")
    what = f"A defect of streamnb ended the command: {traceback.format_exception_only(error)[-1].strip()}."
    lines = traceback.format_exception(error)
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="streamnb-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as file:
            file.writelines(lines)
    except OSError:
        sys.stderr.writelines(lines)
        return DefectError(what, "Report it with the lines above; no file could be written.")
    return DefectError(what, f"Report it with the file {file.name}, which holds the traceback.")
