"""Everything that touches a disk: files, the directory's lock, the snapshot container, JSON lines.

It knows bytes, checksums, fsync and file names; it writes a `Snapshot` of `streamnb.base` and reads it back
whole or not at all. It must not know what the arrays in a snapshot mean, nor which model, topic or command
uses it.

- `container`: the bytes of a snapshot file, with a checksum per section.
- `snapshot_file`: a `Snapshot` in a container; `migrations` reads snapshots of earlier versions,
  `newer_minor` reads what it knows of later ones.
- `directory`: the numbered snapshots of one engine; `retention` chooses the expired ones, `lock` keeps a
  second engine out.
- `files`: atomic writes and bounded reads; `os_errors` turns an ``OSError`` into a sentence.
- `lines`: JSON lines, read and appended.
- `outputs`: checks that an output file can be written, before a command starts its work.
"""

from streamnb.storage import files
from streamnb.storage.container import SECTIONS_MAX
from streamnb.storage.directory import (
    SET_ASIDE,
    SnapshotDirectory,
    check_kept,
    inspect_directory,
    pin,
    read_snapshot,
    unpin,
    write_snapshot,
)
from streamnb.storage.lines import (
    LineReader,
    LongLine,
    first_line,
    open_append,
    open_lines,
    output_error,
    place_of,
    replace_by_null,
)
from streamnb.storage.outputs import check_directory, check_new

__all__ = [
    "SECTIONS_MAX",
    "SET_ASIDE",
    "LineReader",
    "LongLine",
    "SnapshotDirectory",
    "check_directory",
    "check_kept",
    "check_new",
    "files",
    "first_line",
    "inspect_directory",
    "open_append",
    "open_lines",
    "output_error",
    "pin",
    "place_of",
    "read_snapshot",
    "replace_by_null",
    "unpin",
    "write_snapshot",
]
