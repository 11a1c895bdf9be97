"""A directory's lock is exclusive, and it is free as soon as its holder has died."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from streamnb.errors import StorageError
from streamnb.storage.lock import lock_directory
from tests.support.disk import names, run_python


def test_a_lock_is_exclusive_and_dies_with_its_holder(tmp_path: Path) -> None:
    """Another process holds it until it is killed; then it is free without any cleanup."""
    child = run_python(
        "import sys, time; from pathlib import Path; from streamnb.storage.lock import lock_directory\n"
        "lock = lock_directory(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)",
        tmp_path,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    with pytest.raises(StorageError) as caught:
        lock_directory(tmp_path)
    holder = f"another learner; the lock file names process {child.pid} on "
    assert caught.value.what.startswith(f"The snapshot directory {tmp_path} is in use by {holder}")
    assert caught.value.hint

    child.kill()
    child.communicate()
    with lock_directory(tmp_path), pytest.raises(StorageError, match="another learner"):
        lock_directory(tmp_path)
    lock = lock_directory(tmp_path)
    lock.close()
    lock.close()


def test_a_lock_needs_its_directory(tmp_path: Path) -> None:
    """A missing directory is an error, and so is a lock file that is a link."""
    with pytest.raises(StorageError, match="No such file"):
        lock_directory(tmp_path / "missing")
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="symbolic links"):
        lock_directory(tmp_path)
    assert names(tmp_path) == ["lock"]
