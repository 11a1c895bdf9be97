"""Read HTML strictly: tags must be balanced and known, and nothing may run or be fetched."""

from __future__ import annotations

from html.parser import HTMLParser

TAGS = {"b", "bdi", "div", "p", "span", "table", "tbody", "td", "th", "thead", "tr"}


class Markup(HTMLParser):
    """What a browser shows of some markup.

    Attributes
    ----------
    text : str
    rows : list of list of str
        The cells of all tables' rows.
    spans : list of (str, dict)
        The text and the attributes of each span.
    """

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.text = ""
        self.rows: list[list[str]] = []
        self.spans: list[tuple[str, dict[str, str]]] = []
        self._open: list[str] = []
        self.feed(markup)
        self.close()
        assert self._open == [], "a tag was not closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Open a tag."""
        given = {name: value or "" for name, value in attrs}
        assert tag in TAGS, tag
        assert given.keys() <= {"style", "title"}, given
        assert "url" not in given.get("style", "")
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in {"td", "th"}:
            self.rows[-1].append("")
        elif tag == "span":
            self.spans.append(("", given))

    def handle_endtag(self, tag: str) -> None:
        """Close a tag."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Add text to whatever is open."""
        self.text += data
        if {"td", "th"} & set(self._open):
            self.rows[-1][-1] += data
        if "span" in self._open:
            text, given = self.spans[-1]
            self.spans[-1] = (text + data, given)
