"""The documents are true: commands, Python and settings run, links lead somewhere, words are the code's.

Fenced blocks are marked by what follows the three backticks:

    console         commands after `$ `, run one after another in a fresh checkout
    toml            settings, loaded; with a file's name (`toml tickets.toml`) also written into the checkout
    json NAME       a file of the checkout
    python          examples with `>>>`, run by doctest; one page is one session

A comment before a block says what else it is: `<!-- kafka -->` needs a broker, `<!-- part -->` is not a whole
file of settings.
"""

from __future__ import annotations

import doctest
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import NamedTuple

import mmh3
import orjson
import pytest

from deploy.kafka.broker import UnreachableError, assemble
from streamnb import TEXT_ONLY, Categories, NaiveBayes, Number, View, errors
from streamnb.base import Batch, Snapshot
from streamnb.cli.exits import INTERRUPTED
from streamnb.config import load_settings
from streamnb.config.settings import paths
from streamnb.engine import Guard, GuardSettings, Metrics
from streamnb.errors import RecordError, StreamnbError
from streamnb.evaluation import DriftWatch, LiveEvaluation
from streamnb.storage import write_snapshot
from streamnb.storage.container import MAJOR, MINOR
from streamnb.storage.newer_minor import VALUES, is_known_section
from tests.support import strangers_reader

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *(ROOT / "docs").rglob("*.md")]
)
PAGES = [page for page in PAGES if page.exists()]
README = (ROOT / "README.md").read_text()

BLOCK = re.compile(
    r"(?:<!-- (?P<mark>\w+) -->\n)?```(?P<kind>\w+)(?: (?P<name>\S+))?\n(?P<text>.*?)```", re.DOTALL
)
LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
FENCED = re.compile(r"```.*?```", re.DOTALL)

# `make test` is this very run, and the API reference needs an extra that the tests do without.
NOT_HERE = {"make test", "make docs"}

# Words that have another word here, or none: see "How prose reads" in CONTRIBUTING.md.
NOT_OURS = (
    "checkpoint",
    "anew",
    "so many",
    "let go",
    "meanwhile",
    "of which",
    "had better",
    "whatever befalls",
)


class Block(NamedTuple):
    """One fenced block of a page."""

    page: Path
    mark: str
    kind: str
    name: str
    text: str

    @property
    def commands(self) -> list[str]:
        """What is typed in a console block."""
        return [line.removeprefix("$ ") for line in self.text.splitlines() if line.startswith("$ ")]


def blocks(kind: str, *marks: str) -> list[Block]:
    """Every block of a kind, in all pages, with one of those marks."""
    found = [
        Block(page, match["mark"] or "", match["kind"], match["name"] or "", match["text"])
        for page in PAGES
        for match in BLOCK.finditer(page.read_text())
    ]
    return [block for block in found if block.kind == kind and block.mark in (marks or ("",))]


def sessions(mark: str) -> list[tuple[Path, list[str]]]:
    """The commands of each page, in order: a later block may use what an earlier one made."""
    pages = {block.page: list[str]() for block in blocks("console", mark)}
    for block in blocks("console", mark):
        pages[block.page] += block.commands
    return list(pages.items())


def of(value: object) -> str:
    """A page, as a test's name shows it."""
    return str(value.relative_to(ROOT)) if isinstance(value, Path) else ""


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    """A folder in which the documents' commands find what they name, and leave what they make."""
    for name in (".ci", "streamnb", "tests", "deploy", "configs", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Makefile", "pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, tmp_path / name)  # with its age, which make looks at
    (tmp_path / ".venv").symlink_to(sys.prefix)
    stamps = [Path(sys.prefix) / ".demo", Path(sys.prefix) / ".installed"]
    inputs = [ROOT / "pyproject.toml", ROOT / "setup.py", ROOT / ".ci" / "constraints.txt"]
    made_from = [
        *inputs,
        *(path for kind in ("pyx", "pxd", "pyi") for path in (ROOT / "streamnb").rglob(f"*.{kind}")),
    ]
    installed = min((stamp.stat().st_mtime if stamp.exists() else 0.0) for stamp in stamps)
    if any(path.stat().st_mtime > installed for path in made_from):
        pytest.fail("this environment is older than what it is made from: run `make install`")
    yield tmp_path
    subprocess.run(["make", "kafka-stop"], cwd=tmp_path, capture_output=True, check=False)


def write_files(page: Path, folder: Path) -> None:
    """Write a page's named blocks into a folder."""
    for kind in ("toml", "json"):
        for block in blocks(kind, "", "part"):
            if block.page == page and block.name:
                (folder / block.name).write_text(block.text)


def run(command: str, folder: Path) -> None:
    """One command, as a shell runs it; what it printed is shown where it fails."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "MYPY_CACHE_DIR": str(
            ROOT / ".mypy_cache"
        ),  # files are the same there: only changed ones are checked again
    }
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env=environment,
    )

    assert done.returncode == 0, f"$ {command}\n{done.stdout}\n{done.stderr}"


# ---- commands


def test_there_are_commands_to_run() -> None:
    """Both kinds of block are found, and the first screen has the two commands."""
    first = next(block for block in blocks("console") if block.page.name == "README.md")

    assert first.commands == ["make demo", "make test"]
    assert len(sessions("")) >= 2
    assert len(sessions("kafka")) >= 1
    assert {block.mark for block in blocks("console", "", "kafka", "part")} <= {"", "kafka"}


@pytest.mark.parametrize(("page", "commands"), sessions(""), ids=of)
def test_the_commands_of_a_page_run(page: Path, commands: list[str], checkout: Path) -> None:
    """One after another, in one folder."""
    write_files(page, checkout)
    for command in commands:
        if command not in NOT_HERE:
            run(command, checkout)


@pytest.mark.kafka
@pytest.mark.parametrize(("page", "commands"), sessions("kafka"), ids=of)
def test_the_commands_of_a_page_run_on_a_real_broker(page: Path, commands: list[str], checkout: Path) -> None:
    """On the port that the configurations name, unless somebody else has it."""
    try:
        assemble()
    except UnreachableError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))
    with socket.socket() as taken:
        if taken.connect_ex(("127.0.0.1", 9092)) == 0 and os.environ.get("CI") != "true":
            pytest.skip("a broker of somebody else's listens on 127.0.0.1:9092, where the documents' would")
    write_files(page, checkout)
    for command in commands:
        run(command, checkout)


def test_the_make_targets_that_are_named_exist() -> None:
    """`make help` lists every target that a page names."""
    make = shutil.which("make")
    assert make is not None
    listed = subprocess.run([make, "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    targets = set(re.findall(r"^  make ([a-z-]+) ", listed, re.MULTILINE))
    named = {name for page in PAGES for name in re.findall(r"(?:`|\$ )make ([a-z-]+)", page.read_text())}

    assert {"install", "demo", "test", "check", "bench", "docs", "kafka", "help"} <= targets
    assert named <= targets


def test_the_streamnb_commands_that_are_named_exist() -> None:
    """In text too, where nothing runs them."""
    from streamnb.cli import app
    from streamnb.cli.snapshot import app as snapshot_app

    commands = {str(one.name or getattr(one.callback, "__name__", "")) for one in app.registered_commands}
    of_snapshots = {
        str(one.name or getattr(one.callback, "__name__", "")) for one in snapshot_app.registered_commands
    }
    texts = [page.read_text() for page in PAGES]
    named = {name for text in texts for name in re.findall(r"(?:`|bin/)streamnb ([a-z]+)", text)}
    named_of_snapshots = {name for text in texts for name in re.findall(r"streamnb snapshot ([a-z]+)", text)}

    assert {"run", "check"} <= named <= commands | {"snapshot"}
    assert {name.replace("_", "-") for name in named_of_snapshots} <= of_snapshots | {"inspect"}


# ---- Python and settings


@pytest.mark.parametrize("page", [page for page in PAGES if ">>> " in page.read_text()], ids=of)
def test_the_python_of_a_page_runs(page: Path) -> None:
    """Its examples print what the page says they print."""
    results = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)

    assert results.attempted > 2
    assert results.failed == 0


@pytest.mark.parametrize(
    "block", blocks("toml", "", "part"), ids=lambda block: f"{of(block.page)}-{block.name}"
)
def test_the_settings_of_a_page_are_settings(block: Block, tmp_path: Path) -> None:
    """A whole file loads; a part does, too, for every setting has a default."""
    path = tmp_path / "settings.toml"
    path.write_text(block.text)

    assert load_settings(path) is not None
    assert tomllib.loads(block.text)


# ---- links, words and lengths


@pytest.mark.parametrize("page", PAGES, ids=of)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link names a file of the repository, and every anchor a heading of it."""
    for target in LINK.findall(FENCED.sub("", page.read_text())):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{of(page)}: {target}"
        assert there.is_relative_to(ROOT)
        if anchor:
            headings = HEADING.findall(FENCED.sub("", there.read_text()))
            assert anchor in {anchor_of(heading) for heading in headings}, f"{of(page)}: {target}"


def anchor_of(heading: str) -> str:
    """The anchor that a heading has on the usual hosts."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=of)
def test_every_row_of_a_table_has_its_cells(page: Path) -> None:
    """As many as the row above it; a bar inside a cell is escaped."""
    above = 0
    for line in FENCED.sub("", page.read_text()).splitlines():
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert not (above and cells) or cells == above, line
        above = cells


def test_every_page_is_reached_from_the_readme() -> None:
    """In one step."""
    linked = {(ROOT / target.partition("#")[0]).resolve() for target in LINK.findall(README)}

    assert set(PAGES) - {ROOT / "README.md"} <= linked


def test_the_readme_is_one_page() -> None:
    """What is more belongs into docs/."""
    assert len(README.splitlines()) <= 110
    assert len(README.split()) <= 760


@pytest.mark.parametrize("page", PAGES, ids=of)
def test_the_words_of_a_page_are_ours(page: Path) -> None:
    """No old words, and one word for one thing."""
    text = FENCED.sub("", page.read_text()).lower()
    if page.name == "CONTRIBUTING.md":  # which says that they are not
        text = text.partition("## how prose reads")[0]

    assert [word for word in NOT_OURS if re.search(rf"\b{word}\b", text)] == []


def test_every_word_of_the_glossary_is_used_in_the_code() -> None:
    """A word that the code does not use is not a word of ours."""
    words = re.findall(r"^\*\*(.+?)\*\*", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    code = " ".join(path.read_text() for path in (ROOT / "streamnb").rglob("*.py")).lower()
    spelled = code.replace("_", " ").replace("-", " ")

    assert len(words) > 25
    assert [word for word in words if word.lower().replace("_", " ").replace("-", " ") not in spelled] == []


@pytest.mark.parametrize("word", ["checkpoint", f"{ROOT}/", f"{Path.home()}/"])
def test_words_that_do_not_belong_here_are_nowhere(word: str) -> None:
    """One word for one thing, and no path of anybody's machine."""
    kinds = {".py", ".md", ".toml", ".yaml", ".json", ".xml", ".svg"}
    folders = [ROOT / part for part in ("streamnb", "tests", "deploy", "configs", "docs")]
    files = [*ROOT.glob("*"), *(path for folder in folders for path in folder.rglob("*"))]
    texts = {path: path.read_text() for path in files if path.suffix in kinds and path != Path(__file__)}
    holders = [path for path, text in texts.items() if word in text]

    assert len(texts) > 50
    assert holders == []


# ---- what is shown


def test_the_law_in_the_readme_is_the_law() -> None:
    """The line of packages is the one that `test_architecture` enforces."""
    from tests.laws.test_architecture import LAW

    stated = re.search(r"`(errors < [^`]*)`", README)
    assert stated is not None
    packages = [tuple(sorted(part.strip() for part in level.split("|"))) for level in stated[1].split("<")]

    assert packages == [tuple(sorted(level)) for level in LAW]


@pytest.mark.parametrize(("page", "explanation"), [("README.md", 0), ("docs/formats/wire.md", 2)])
def test_the_score_that_is_shown_is_the_one_that_is_published(
    page: str, explanation: int, tmp_path: Path
) -> None:
    """The README's tickets run through files; only the topic's name differs."""
    write_files(ROOT / "README.md", tmp_path)
    (shown,) = (
        block.text
        for block in blocks("json")
        if block.page == ROOT / page and not block.name and "posterior" in block.text
    )
    changes = [
        f"output.explanation={explanation}",
        'source={kind="jsonl", path="tickets.jsonl"}',
        'sink={kind="jsonl", path="scores.jsonl"}',
        'dead_letters.sink={kind="jsonl", path="dead.jsonl"}',
    ]
    run("streamnb run tickets.toml " + " ".join(f"--set '{change}'" for change in changes), tmp_path)
    *_, last = (tmp_path / "scores.jsonl").read_bytes().splitlines()
    score = orjson.loads(last)
    score["source"]["topic"] = "tickets"

    assert score == orjson.loads(shown)


def test_the_picture_of_the_demo_is_of_the_demo() -> None:
    """Drawn again, it is the same; where the demo has changed: `python docs/images/demo.py`."""
    path = ROOT / "docs" / "images" / "demo.py"
    spec = spec_from_file_location("demo_picture", path)
    assert spec is not None
    assert spec.loader is not None
    picture = module_from_spec(spec)
    spec.loader.exec_module(picture)

    assert picture.draw(picture.printed()) == path.with_suffix(".svg").read_text()


# ---- contracts: what is listed is what there is


def first_column(page: str, heading: str) -> list[str]:
    """The words in backticks in the first column of the first table under a heading."""
    text = (ROOT / page).read_text().partition(f"{heading}\n")[2]
    rows = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert rows is not None
    cells = [row.split("|")[1] for row in rows[0].splitlines()[2:]]
    return [word for cell in cells for word in re.findall(r"`([^`]+)`", cell)]


def test_every_reason_of_a_dead_letter_is_listed() -> None:
    """In the order of the code."""
    assert first_column("docs/formats/dead-letters.md", "## Reasons") == list(RecordError.REASONS)


def test_every_header_of_a_dead_letter_is_listed() -> None:
    """The code writes these, and no others."""
    code = (ROOT / "streamnb" / "engine" / "dead_letters.py").read_text()
    written = set(re.findall(r'"(streamnb\.\w+)"', code))

    assert set(first_column("docs/formats/dead-letters.md", "## In Kafka")) == written


def test_every_field_of_a_score_is_listed() -> None:
    """Those that are always there, and those that are not."""
    schema = orjson.loads((ROOT / "streamnb" / "wire" / "schemas" / "score.schema.json").read_bytes())
    listed = first_column("docs/formats/wire.md", "## A score")
    others = first_column("docs/formats/wire.md", "These fields are present only under a condition:")

    assert set(listed) == set(schema["required"])
    assert set(others) == set(schema["properties"]) - set(schema["required"])


def test_every_exit_code_is_listed() -> None:
    """Of every error, and of Ctrl-C."""
    page = (ROOT / "docs" / "operating.md").read_text().partition("## Exit codes")[2].partition("##")[0]
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    raised = {kind.exit_code for kind in kinds if issubclass(kind, StreamnbError)}

    assert listed == raised | {INTERRUPTED}


def test_every_metric_is_listed() -> None:
    """By the names on the page of a run over two labelled messages, with a drift detector."""
    metrics = Metrics()
    live = LiveEvaluation(drift=DriftWatch("DDM"))
    batch = Batch({"text": ["win", "lunch"] * 3}, ["spam", "ham"] * 3)
    live.add(NaiveBayes().step(batch), batch.labels)
    metrics.show(live)
    families = {family.name for family in metrics.registry.collect()}
    cells = first_column("docs/operating.md", "## Metrics")

    assert {re.sub(r"(_total)?(\{.*)?$", "", cell) for cell in cells} == families


def test_the_page_is_of_the_version_that_is_written() -> None:
    """In its title."""
    title, *_ = (ROOT / "docs" / "formats" / "snapshot.md").read_text().splitlines()

    assert title == f"# Snapshot format, version {MAJOR}.{MINOR}"


def test_every_section_of_a_snapshot_is_listed() -> None:
    """Those of the oldest file, of models with every kind of view and with many classes, and of the guard."""
    listed = first_column("docs/formats/snapshot.md", "## The sections")
    views = [*TEXT_ONLY, View("amount", Number("amount")), View("kind", Categories(fields=("kind",)))]
    model = NaiveBayes(views)
    model.learn_one({"text": "win", "amount": 3.0, "kind": "a"}, "spam")
    _, guarded = Guard(GuardSettings()).freeze()
    many = NaiveBayes(TEXT_ONLY)
    for i in range(9):
        many.learn_one({"text": "win"}, f"class{i}")
    names = (*model.freeze().sections, *many.freeze().sections, *guarded)
    written = {re.sub(r"^block\d+_", "block<i>_", name) for name in names}

    assert written <= set(listed)
    assert set(listed) - written <= {"index", "index_before", "index_state", "block<i>_..."}
    assert [name for name in listed if not is_known_section(name.replace("<i>", "7"))] == []


def test_every_value_of_a_snapshot_is_listed() -> None:
    """Those that a reader knows in a file of a newer version."""
    listed = first_column("docs/formats/snapshot.md", "These values are present only if not zero or empty:")
    always = {"values.classes", "values.learned"}

    assert {f"values.{value}" for value in VALUES} == always | set(listed)


def test_the_digest_can_be_computed_from_what_the_page_says(tmp_path: Path) -> None:
    """The order-free one, from the bytes of a file alone."""
    model = NaiveBayes(TEXT_ONLY)
    for text, label in [("win money", "spam"), ("lunch at noon", "ham"), ("win", "spam")]:
        model.learn_one({"text": text}, label)
    frozen = model.freeze()
    path = tmp_path / "model.snb"
    snapshot = Snapshot(frozen.values, frozen.sections, frozen.digest(), {}, {}, {})
    write_snapshot(path, snapshot)

    header, sections = strangers_reader.read(path.read_bytes())

    def hashed(names: list[str], *numbers: float) -> int:
        parts = b"".join(struct.pack("<I", len(name.encode())) + name.encode() for name in names)
        return mmh3.hash128(parts + struct.pack(f"<{len(numbers)}d", *numbers))

    classes = [json.dumps(label) for label in header["values"]["classes"]]
    total = hashed(["learned"], header["values"]["learned"])
    blob, bounds = bytes(sections["token_bytes"]), sections["token_bounds"]
    for i, row in enumerate(sections["counts"]):
        token = blob[bounds[i] >> 8 : bounds[i + 1] >> 8].decode()
        total += sum(hashed(["count", "words", token, c], n) for c, n in zip(classes, row, strict=True) if n)
    for c, label in enumerate(classes):
        total += hashed(["class", label], sections["class_counts"][0][c])
        total += hashed(["total", "words", label], sections["totals"][0][c])
        total += hashed(["length", label], *(column[c] for column in sections["length"]))

    assert f"{total % 2**128:032x}" == header["digest"]["order_free"]


def test_every_setting_that_is_named_exists() -> None:
    """``table.key`` in backticks, where `table` is one of the settings'."""
    known = set(paths())
    tables = {path.partition(".")[0] for path in known}
    named = {
        name
        for page in PAGES
        for name in re.findall(r"`([a-z_]+\.[a-z_.]+)(?: = [^`]*)?`", FENCED.sub("", page.read_text()))
        if name.partition(".")[0] in tables and not name.endswith((".toml", ".py", ".md", ".snb"))
    }

    assert len(named) > 25
    assert {name for name in named if name not in known} == set()


def test_every_file_that_is_named_exists() -> None:
    """Paths of the repository in backticks."""
    folders = "tests|configs|deploy|docs|streamnb"
    named = {path for page in PAGES for path in re.findall(rf"`((?:{folders})/[^` ]*)", page.read_text())}

    assert len(named) > 15
    assert {path for path in named if not (ROOT / path).exists()} == set()
