"""Copies of nested settings tables with one part changed, for the migrations of a snapshot's header."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Tables = dict[str, Any]


def each_view(tables: Tables, change: Callable[[Tables], Tables]) -> Tables:
    """Return a copy with every view changed."""
    views = tables.get("views")
    if not isinstance(views, list):
        return tables
    return tables | {"views": [change(view) if isinstance(view, dict) else view for view in views]}


def changed(tables: Tables, name: str, change: Callable[[Tables], Tables]) -> Tables:
    """Return a copy with one inner table changed; a header that holds no such table is left to its reader."""
    inner = tables.get(name)
    return tables | {name: change(inner)} if isinstance(inner, dict) else tables
