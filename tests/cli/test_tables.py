"""Tables are printed as plain text, whatever their cells hold."""

from __future__ import annotations

import pytest

from streamnb.cli.tables import print_table


def test_F8_a_cell_cannot_act_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """A class comes from outside; its escape sequences are shown, not sent."""
    print_table(["class", "taken for \x1b[31m"], [["Größe \x1b]0;title\x07", "1"]], title="a title")
    printed = capsys.readouterr().out
    assert not {"\x1b", "\x07"} & set(printed)
    assert "Größe \\x1b]0;title\\x07" in printed
