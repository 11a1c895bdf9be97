"""Draw the README's picture of the demo from what the demo prints: python docs/images/demo.py."""

from __future__ import annotations

import io
import re
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from streamnb.cli.demo.stage import Demo

SHOWN = (range(11, 18), range(153, 164))  # the first campaign is learned; a word that nobody has seen
WIDTH = 94


def printed() -> list[Text]:
    """Return the lines that the demo prints for 300 messages, with their colours."""
    with Demo(messages=300) as demo:
        demo.console = Console(
            record=True, file=io.StringIO(), force_terminal=True, width=200, highlight=False, soft_wrap=True
        )
        demo.run()
        return Text.from_ansi(demo.console.export_text(styles=True)).split("\n", allow_blank=True)


def draw(lines: list[Text]) -> str:
    """Return the lines that are shown as an SVG that loads nothing from elsewhere."""
    console = Console(record=True, file=io.StringIO(), width=WIDTH, highlight=False)
    for i, part in enumerate(SHOWN):
        if i:
            console.print("[dim]   …[/dim]")
        for line in part:
            console.print(lines[line], overflow="ellipsis", no_wrap=True, crop=True)
    local = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return console.export_svg(title="make demo", theme=MONOKAI, code_format=local, unique_id="demo")


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(draw(printed()), encoding="utf-8")
