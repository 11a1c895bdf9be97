"""HTML for a notebook: escaped text, tables, and words tinted by a number.

There are no scripts, style sheets or other resources. Text keeps the notebook's own color, and a tint is
translucent, so that both are readable in a light and in a dark theme.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence

CHARACTERS_MAX = 80  # of a word or a label
CELL_MAX = 400  # characters, for the settings of a view
TINT_MAX = 0.6  # the opacity of the largest contribution
FOR, AGAINST = "31, 119, 180", "230, 120, 20"  # blue and orange, which a colour-blind reader tells apart
_CELL = "text-align: left; vertical-align: top"


def escaped(value: object, characters: int = CHARACTERS_MAX) -> str:
    """Return a value's text without a meaning in HTML, cut to a number of characters.

    The text is isolated, so that it cannot turn the direction of the text around it.

    Examples
    --------
    >>> escaped("<b>"), escaped("win" * 9, characters=4)
    ('<bdi>&lt;b&gt;</bdi>', '<bdi>winw…</bdi>')
    """
    return f"<bdi>{_safe(cut(value, characters))}</bdi>"


def cut(value: object, characters: int = CHARACTERS_MAX) -> str:
    """Return a value's text, with an ellipsis for what is beyond a number of characters."""
    text = str(value)
    return text if len(text) <= characters else text[:characters] + "…"


def signed(value: float) -> str:
    """Return a contribution with its sign and three digits after the point.

    Examples
    --------
    >>> signed(2.0), signed(-math.inf)
    ('+2.000', '-inf')
    """
    return f"{value:+.3f}"


def tinted(word: str, value: float, largest: float, title: str) -> str:
    """Return a word on a tint: the sign of its value is the hue, its share of the largest one the opacity.

    Examples
    --------
    >>> "rgba(31, 119, 180, 0.60)" in tinted("win", 2.0, 2.0, "words: +2.000")
    True
    >>> "rgba(230, 120, 20, 0.30)" in tinted("lunch", -1.0, 2.0, "words: -1.000")
    True
    """
    size = abs(value)
    share = 1.0 if size == largest else size / largest if largest > 0 else 0.0
    opacity = TINT_MAX * share if size > 0 and math.isfinite(share) else 0.0
    style = (
        f"background-color: rgba({FOR if value >= 0 else AGAINST}, {opacity:.2f}); "
        "padding: 0.1em 0.3em; border-radius: 0.2em; white-space: pre-wrap"
    )
    return f'<span style="{style}" title="{_safe(title)}">{escaped(word)}</span>'


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], note: str = "") -> str:
    """Return a table of escaped cells; a note stands below it, in fainter text."""
    body = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    below = f'<p style="opacity: 0.7; margin: 0">{escaped(note)}</p>' if note else ""
    head = f"<thead><tr>{_cells('th', heads)}</tr></thead>"
    style = "border-collapse: collapse; color: currentColor"
    return f'<table style="{style}">{head}<tbody>{body}</tbody></table>{below}'


def block(title: str, *contents: str) -> str:
    """Return markup under a title, which is markup too."""
    return f"<div><p>{title}</p>{''.join(contents)}</div>"


def _cells(tag: str, values: Iterable[object]) -> str:
    return "".join(f'<{tag} style="{_CELL}">{escaped(value, CELL_MAX)}</{tag}>' for value in values)


def _safe(value: object) -> str:
    """Return a value's text without a meaning in HTML.

    Half a character (a lone surrogate) cannot be sent to a browser and is written as its code.
    """
    return html.escape(str(value).encode("utf-8", "backslashreplace").decode())
