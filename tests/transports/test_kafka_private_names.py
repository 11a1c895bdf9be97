"""The private names of kafka-python that the transport uses exist, and those that it replaces are checked."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import kafka
import pytest
from kafka import KafkaConsumer

from streamnb.errors import SettingsError
from streamnb.transports.kafka import client
from streamnb.transports.kafka.replaced import APPENDED, APPENDING, REPLACED, SET, check_replaced

ROOT = Path(__file__).parents[2]
OURS = sorted((ROOT / "streamnb" / "transports" / "kafka").glob("*.py"))
THEIRS = Path(kafka.__file__).parent


def _of_the_client(path: Path) -> set[str]:
    """Return the private attributes that a file uses, without those that its own classes make."""
    tree = ast.parse(path.read_text())
    private = re.compile(r"_[a-z]\w*")
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and private.fullmatch(node.attr)
    }
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    own |= {
        target.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign)
        for target in _targets(node)
        if isinstance(target.value, ast.Name) and target.value.id == "self"
    }
    return used - own


def _targets(node: ast.Assign | ast.AnnAssign | ast.AugAssign) -> Iterator[ast.Attribute]:
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        for inner in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(inner, ast.Attribute):
                yield inner


def test_every_private_name_that_is_used_is_the_clients() -> None:
    """There are about forty; a new version that renames one is found here, without a broker."""
    text = "\n".join(path.read_text() for path in THEIRS.rglob("*.py"))
    theirs = set(re.findall(r"\b_[a-z]\w*", text))
    used = {name: path.name for path in OURS for name in _of_the_client(path)}
    ours = {name for path in OURS for name in re.findall(r"def (_[a-z]\w*)", path.read_text())}
    of_the_base = set(re.findall(r"\b_[a-z]\w*", (ROOT / "streamnb/transports/topics.py").read_text()))

    assert len(used) > 25
    assert {name: file for name, file in used.items() if name not in theirs | ours | of_the_base} == {}


def test_every_name_that_is_assigned_to_the_client_is_checked() -> None:
    """What stands left of an assignment, on another object than our own, is in the table."""
    checked = {name for table in (REPLACED, APPENDED) for names in table.values() for name in names}
    assigned: dict[str, str] = {}
    for path in OURS:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Assign):
                for target in _targets(node):
                    if not isinstance(target.value, ast.Name) or target.value.id not in {"self", "batch"}:
                        assigned[target.attr] = path.name

    of_our_own_objects = {"left", "unreadable"}
    assert set(assigned) - of_our_own_objects <= checked, assigned
    assert {"PartitionRecords", "classify_batch_error", "await_ready", "refresh_metadata"} <= set(assigned)
    assert {"_connect", "_send_list_offsets_requests", "_append", "_build_transport"} <= set(assigned)


def test_every_private_name_by_which_rows_are_appended_is_checked() -> None:
    """In Python and in compiled code: without one of them records are sent one by one, and that is logged."""
    folder = ROOT / "streamnb" / "transports" / "kafka"
    used = _of_the_client(folder / "rows.py") - {"_append_rows"}
    compiled = set(re.findall(r"\b(?:records|builder)\.(_\w+)", (folder / "_sink.pyx").read_text()))
    checked = {name for names in APPENDED.values() for name in names} | set(APPENDING)

    assert used | compiled <= checked
    assert {"_tp_lock", "_record_futures", "_accumulator"} <= used
    assert {"_num_records", "_next_offset", "_buffer"} <= compiled


@pytest.mark.parametrize(
    ("owner", "name"),
    [(owner, name) for owner, names in REPLACED.items() for name in names],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_client_without_a_name_that_is_replaced_is_refused(
    owner: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one sentence, before it connects."""
    for base in owner.__mro__[:-1]:
        if name in vars(base):
            monkeypatch.delattr(base, name)
    check_replaced.cache_clear()
    try:
        with pytest.raises(SettingsError, match=rf"kafka-python 3\S* lacks .*{owner.__qualname__}\.{name}"):
            client.connect(KafkaConsumer, {"bootstrap_servers": "127.0.0.1:1", "bootstrap_timeout_ms": 1})
    finally:
        check_replaced.cache_clear()


@pytest.mark.parametrize("owner", SET, ids=lambda owner: owner.__name__)
def test_a_client_without_a_setting_that_is_changed_is_refused(
    owner: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be set where nothing reads it."""
    check_replaced.cache_clear()
    for name in SET[owner]:
        monkeypatch.delitem(owner.DEFAULT_CONFIG, name)  # type: ignore[attr-defined]
    try:
        with pytest.raises(SettingsError, match=r"lacks .*config\["):
            check_replaced()
    finally:
        check_replaced.cache_clear()


def test_the_client_that_is_installed_has_every_name() -> None:
    """The version that `pyproject.toml` asks for."""
    check_replaced.cache_clear()
    check_replaced()
