"""The step from version 1.1 to 1.2 of a snapshot: views of one category or number become blocks of one name.

The readers ``category`` and ``number`` had statistics of their own. They are now shorthand for ``categories``
and ``numbers`` of one field. So their settings change, a category's tokens get the field's name, a number's
moments move into sections of their own, and the digest is computed again for the statements that change. The
sums stay as they are, so a model gives bit for bit the same scores as before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import orjson

from streamnb.base import HINT, INDEX_SECTIONS, Digest, Section, Sections, section, statement
from streamnb.base import changed as changed_digest
from streamnb.errors import SnapshotError
from streamnb.storage.container import Contents
from streamnb.storage.tables import Tables, changed, each_view

_BLOCKS = {"category": "categories", "number": "numbers"}
_UNCOUNTED = {"number", "numbers"}
_GROWTH_MAX = 1 << 30  # bytes that the names of fields may add to the tokens


class _View(NamedTuple):
    """A view of version 1.1: its index, its name, and the kind and the field of its reader."""

    i: int
    name: str
    kind: str
    field: str
    counts: bool


def to_1_2(old: Contents) -> Contents:
    """Turn views of one category or number into blocks of one name."""
    views = _views(old.header.get("statistics"))
    header = changed(old.header, "settings", lambda settings: each_view(settings, _settings_of_view))
    header = changed(
        header,
        "statistics",
        lambda tables: changed(tables, "model", lambda model: each_view(model, _state_of_view)),
    )
    header = changed(header, "reading", lambda tables: changed(tables, "event_models", _event_models(views)))
    if not any(view.kind in _BLOCKS for view in views):
        return old._replace(header=header)
    try:
        return _with_sums(old._replace(header=header), views)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise SnapshotError("The sections of a snapshot of version 1.1 do not fit together.", HINT) from error


def _views(statistics: object) -> list[_View]:
    """Return the views, as far as they have the form of version 1.1."""
    model = statistics.get("model") if isinstance(statistics, dict) else None
    tables = model.get("views") if isinstance(model, dict) else None
    found = []
    for i, view in enumerate(tables if isinstance(tables, list) else ()):
        reader = view.get("reader") if isinstance(view, dict) else None
        if isinstance(reader, dict) and isinstance(view.get("name"), str):
            kind, field = str(reader.get("kind")), reader.get("field", "")
            counts = kind not in _UNCOUNTED and "statistic" not in view
            found.append(_View(i, view["name"], kind, field if isinstance(field, str) else "", counts))
    return found


def _reader(reader: Tables) -> Tables:
    return {"kind": _BLOCKS[reader["kind"]], "field": "", "fields": [reader.get("field", "")]}


def _is_shorthand(view: Tables) -> bool:
    reader = view.get("reader")
    return isinstance(reader, dict) and str(reader.get("kind")) in _BLOCKS


def _state_of_view(view: Tables) -> Tables:
    if not _is_shorthand(view):
        return view
    weight = "boolean" if view["reader"]["kind"] == "category" else ""
    return view | {"reader": _reader(view["reader"]), "weight": weight}


def _settings_of_view(view: Tables) -> Tables:
    if not _is_shorthand(view):
        return view
    view = view | {"reader": _reader(view["reader"])}
    return changed(view, "event_model", _event_model)


def _event_models(views: list[_View]) -> Any:  # noqa: ANN401 - a function of tables
    categories = {view.name for view in views if view.kind == "category"}
    return lambda tables: {
        name: _event_model(table) if name in categories and isinstance(table, dict) else table
        for name, table in tables.items()
    }


def _event_model(table: Tables) -> Tables:
    """Return the categorical of one draw from a multinomial; others, and those that no draw is, stay."""
    if table.get("kind") != "multinomial" or table.get("weight") == "log" or table.get("complement"):
        return table
    return {"kind": "categorical"} | {k: table[k] for k in ("smoothing", "unknown") if k in table}


def _with_sums(contents: Contents, views: list[_View]) -> Contents:
    """Return contents with the tokens, the moments and the digest of version 1.2."""
    header, sections = dict(contents.header), dict(contents.sections)
    values: Any = header["values"]
    names = [orjson.dumps(label).decode() for label in values["classes"]]
    removed, added = Digest(), Digest()
    counted = [view for view in views if view.counts]
    prefixes = [f"{view.field}=".encode() if view.kind == "category" else b"" for view in counted]
    if any(prefixes):
        sections |= _tokens(sections, [view.name for view in counted], prefixes, names, removed, added)
        # The hashes of the tokens change, so a reader builds the index again.
        sections = {key: array for key, array in sections.items() if key not in INDEX_SECTIONS}
    digest: Any = header["digest"]
    model: Any = header["statistics"]
    parts = (
        ("all",) if "forgetting" in model["model"] else ("order_free", "all")
    )  # decaying counts are rounded
    digest = digest | {part: changed_digest(digest[part], removed, added) for part in parts}
    removed, added = Digest(), Digest()
    numbers = [view for view in views if view.kind == "number"]
    moments = sections.pop("moments", np.zeros((0, len(names))))
    for i, view in enumerate(numbers):
        sections |= _moments(moments[3 * i : 3 * i + 3], view, names, removed, added)
    header["digest"] = digest | {"all": changed_digest(digest["all"], removed, added)}
    return contents._replace(header=header, sections=sections)


def _tokens(
    sections: Sections,
    views: list[str],
    prefixes: list[bytes],
    names: list[str],
    removed: Digest,
    added: Digest,
) -> dict[str, Section]:
    """Return the tokens with the name of its field before each category; add what changes to the digests."""
    bounds, counts = section(sections, "token_bounds", np.uint64), sections["counts"]
    ends, of_view = (
        (bounds[1:] >> np.uint64(8)).astype(np.int64),
        (bounds[1:] & np.uint64(255)).astype(np.int64),
    )
    longer = np.array([len(prefix) for prefix in prefixes], np.int64)[of_view]
    if longer.sum() > _GROWTH_MAX or bool((np.diff(ends, prepend=0) < 0).any()):
        raise ValueError("the names of fields are too long, or tokens overlap")
    text, pieces, copied = sections["token_bytes"].tobytes(), [], 0
    for row in np.flatnonzero(longer).tolist():
        start, end = int(ends[row - 1]) if row else 0, int(ends[row])
        prefix, view = prefixes[of_view[row]], views[of_view[row]]
        pieces += [text[copied:start], prefix]
        copied = start
        before, after = text[start:end].decode(), (prefix + text[start:end]).decode()
        for name, n in zip(names, counts[row].tolist(), strict=True):
            if n:
                removed.add(statement("count", view, before, name), n)
                added.add(statement("count", view, after, name), n)
    moved = bounds.copy()
    moved[1:] += np.cumsum(longer).astype(np.uint64) << np.uint64(8)
    token_bytes = np.frombuffer(b"".join([*pieces, text[copied:]]), np.uint8)
    return {"token_bytes": token_bytes, "token_bounds": moved}


def _moments(
    array: Section, view: _View, names: list[str], removed: Digest, added: Digest
) -> Mapping[str, Section]:
    """Return the moments of one number as those of a block; add what changes to the digests."""
    if array.shape != (3, len(names)):
        raise ValueError("there are fewer moments than views of a number")
    block = statement(view.name, view.field).hex()
    for c, name in enumerate(names):
        if array[0, c]:
            removed.add(statement("moments", view.name, name), *array[:, c].tolist())
            added.add(statement("moments", block, name), *array[:, c].tolist())
    learned = bool(array[0].any())
    return {
        f"block{view.i}_names": np.frombuffer(orjson.dumps([view.field] if learned else []), np.uint8),
        f"block{view.i}_moments": array if learned else array[:0],
    }
