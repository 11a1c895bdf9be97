"""The direction of knowledge: a package knows those to its left, by their public names, and no others."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "streamnb"

# From left to right; packages of one line do not know each other.
LAW = (
    ("errors",),
    ("base",),
    ("storage",),
    ("naive_bayes", "wire", "evaluation"),
    ("transports", "engine"),
    ("config",),
    ("cli",),
)
RANK = {package: rank for rank, packages in enumerate(LAW) for package in packages}
OTHERS = {"__init__", "__main__", "py.typed", "configs"}  # a link to the examples, so that a wheel has them
ENGINE_NEVER = {"naive_bayes", "storage", "transports", "config", "cli"}

# Inside the model, in the order of a message's way. The kernel is the twin of the first four and of a step.
MODEL_LAW = ("features", "statistics", "event_models", "posterior", "_kernel", "model", "estimators")
MODEL_RANK = {package: rank for rank, package in enumerate(MODEL_LAW)}

# A transport is imported by its own name, so that nobody needs the client of another.
TRANSPORTS = {f"streamnb.transports.{name}" for name in ("memory", "jsonl", "embedded", "kafka", "confluent")}

FILES = sorted(path for suffix in ("py", "pyx", "pxd", "pyi") for path in PACKAGE.rglob(f"*.{suffix}"))
MODULES = [path for path in FILES if path.suffix == ".py"]
KERNEL = [path for path in FILES if path.suffix in {".pyx", ".pxd"}]

TWIN_OF = re.compile(r"# Twin of: (?:nothing; \S.*|(?P<modules>streamnb[\w.]*(?:, streamnb[\w.]*)*))")


class Import(NamedTuple):
    """``from module import name``, wherever it stands in a file."""

    module: str
    name: str

    @property
    def package(self) -> str:
        """The name below `streamnb` that it reaches."""
        parts = self.module.split(".")
        return parts[1] if len(parts) > 1 else self.name if self.name in RANK else "__init__"


def imports_of(path: Path) -> list[Import]:
    """Everything of streamnb that a file imports, in functions and under ``TYPE_CHECKING`` too."""
    text = path.read_text()
    if path.suffix in {".pyx", ".pxd"}:
        found = re.findall(r"^\s*from (streamnb[\w.]*) c?import (\([^)]*\)|[^\n]*)", text, re.MULTILINE)
        return [
            Import(module, name.split(" as ")[0].strip())
            for module, names in found
            for name in names.strip("()").split(",")
            if name.strip()
        ]
    imports: list[Import] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides where it goes"
            if node.module and node.module.split(".")[0] == "streamnb":
                imports += [Import(node.module, alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            imports += [
                Import(alias.name, "") for alias in node.names if alias.name.split(".")[0] == "streamnb"
            ]
    return imports


def twins_of(path: Path) -> list[str]:
    """Return the plain modules that a compiled file names in its first line, or in the one after Cython's."""
    lines = path.read_text().splitlines()
    line = lines[1] if lines[0].startswith("# cython:") else lines[0]
    match = TWIN_OF.fullmatch(line)
    assert match is not None, f"{of(path)}: expected `# Twin of: <modules>` or `# Twin of: nothing; <why>`"
    return match["modules"].split(", ") if match["modules"] else []


def package_of(path: Path) -> str:
    """The name at the top of `streamnb` that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def public_names(module: str) -> set[str]:
    """What a package's ``__init__`` lists in ``__all__``, or what a transport of one module defines."""
    path = ROOT / module.replace(".", "/")
    tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return set(ast.literal_eval(node.value))
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}


def of(path: Path) -> str:
    """A file as a test's name shows it."""
    return str(path.relative_to(PACKAGE))


def test_every_package_has_its_place() -> None:
    """A name at the top of the package is in the law, and at most 13 of them are there."""
    generated = {"__pycache__", "_cython"}  # the second is what Cython's modules share: see setup.py
    names = {path.name.removesuffix(".py") for path in PACKAGE.iterdir()}

    assert {name for name in names if name.partition(".")[0] not in generated} - OTHERS == set(RANK)
    assert len(set(RANK)) <= 13


@pytest.mark.parametrize("path", FILES, ids=of)
def test_a_package_knows_only_those_to_its_left(path: Path) -> None:
    """The import law; `__init__` and `__main__` stand above it."""
    me = package_of(path)
    others = {one.package for one in imports_of(path)} - {me, "__init__"}
    if not me.startswith("__"):
        assert {other for other in others if RANK[other] >= RANK[me]} == set()
    if me == "engine":
        assert others & ENGINE_NEVER == set()


@pytest.mark.parametrize("path", FILES, ids=of)
def test_another_package_is_reached_through_its_public_names(path: Path) -> None:
    """``from streamnb.storage import files``, never ``from streamnb.storage.lock import ...``."""
    me = package_of(path)
    for one in imports_of(path):
        if one.module == f"streamnb.{me}":  # its own, which is not made yet when the module is
            module = PACKAGE / me / one.name
            assert module.is_dir() or module.with_suffix(".py").exists() or path.name == "__init__.py"
        if one.package in {me, "errors"} or one.module == "streamnb":
            continue
        if one.package != "transports":
            assert one.module == f"streamnb.{one.package}"
        else:
            assert one.module in TRANSPORTS
        assert one.name in public_names(one.module)


@pytest.mark.parametrize("path", [path for path in FILES if package_of(path) == "naive_bayes"], ids=of)
def test_the_model_has_a_direction_too(path: Path) -> None:
    """Features, statistics, event models, posterior, model, estimators."""
    parts = path.relative_to(PACKAGE / "naive_bayes").parts
    if len(parts) == 1:
        return
    modules = [f"{one.module}.{one.name}" for one in imports_of(path) if one.package == "naive_bayes"]
    inside = {module.split(".")[2] for module in modules}

    assert {other for other in inside - {parts[0]} if MODEL_RANK[other] > MODEL_RANK[parts[0]]} == set()


@pytest.mark.parametrize("path", KERNEL, ids=of)
def test_a_compiled_file_names_its_plain_twins(path: Path) -> None:
    """They exist; and a file with the name of a plain module names that module."""
    twins = twins_of(path)
    plain = {module.removeprefix(f"streamnb.{package_of(path)}.") for module in twins}
    namesakes = {
        ".".join(module.relative_to(PACKAGE / package_of(path)).with_suffix("").parts)
        for module in MODULES
        if module.stem == path.stem.removeprefix("_") and "_kernel" not in module.parts
        if package_of(module) == package_of(path)
    }

    assert [twin for twin in twins if not (ROOT / twin.replace(".", "/")).with_suffix(".py").exists()] == []
    assert not namesakes or namesakes & plain


@pytest.mark.parametrize("path", KERNEL, ids=of)
def test_what_a_compiled_file_imports_exists(path: Path) -> None:
    """Cython looks for a name only when the module is imported, where a missing kernel is but a warning."""
    missing = []
    found = re.findall(r"^\s*from (streamnb[\w.]*) import (\([^)]*\)|[^\n]*)", path.read_text(), re.MULTILINE)
    for module, names in found:
        for name in names.strip("()").split(","):
            wanted = name.split(" as ")[0].strip()
            if wanted and not hasattr(import_module(module), wanted):
                try:
                    import_module(f"{module}.{wanted}")
                except ImportError:
                    missing.append(f"{module}.{wanted}")

    assert missing == []


@pytest.mark.parametrize("path", sorted((PACKAGE / "transports").rglob("*.py")), ids=of)
def test_a_transport_knows_no_other(path: Path) -> None:
    """The parts of one know each other, and what both Kafka clients share; nothing else does."""
    shared = {"positions", "topics"}
    me = path.relative_to(PACKAGE / "transports").parts[0].removesuffix(".py").removesuffix("_transactions")
    others = {one.module.split(".")[2] for one in imports_of(path) if one.package == "transports"}

    assert {other for other in others - shared if other.removesuffix("_transactions") != me} == set()


@pytest.mark.parametrize("package", sorted(set(RANK) - {"errors"}))
def test_a_package_says_what_it_knows_and_what_it_must_not_know(package: str) -> None:
    """In the docstring of its ``__init__``, which a newcomer reads first."""
    text = ast.get_docstring(ast.parse((PACKAGE / package / "__init__.py").read_text()))

    assert text is not None
    assert re.search(r"\bknows?\b", text)
    assert re.search(r"must\s+not\s+know", text) or package == "cli"


def test_only_three_modules_open_files() -> None:
    """Everything else goes through them, so that a disk can be made to fail."""
    openers = set()
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                is_method = isinstance(node.func, ast.Attribute) and not (
                    isinstance(node.func.value, ast.Name) and node.func.value.id in {"os", "io", "gzip"}
                )
                opens = name in {"open", "FileIO"} and not is_method
                if opens or name in {"read_text", "write_text", "read_bytes", "write_bytes"}:
                    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
                    if not (isinstance(receiver, ast.Name) and receiver.id == "files"):
                        openers.add(of(path))

    assert openers == {"storage/files.py", "storage/lock.py", "storage/lines.py"}


@pytest.mark.parametrize("word", ["pickle", "eval(", "exec(", "yaml", "marshal", "shelve", "allow_pickle"])
def test_G9_nothing_that_is_loaded_can_run(word: str) -> None:
    """No load path may execute what it reads."""
    assert [of(path) for path in MODULES if word in path.read_text()] == []


def test_files_are_small() -> None:
    """The median file has at most 160 lines; a file over 400 says at its top why."""
    lengths = {path: len(path.read_text().splitlines()) for path in MODULES if path.name != "__init__.py"}
    ordered = sorted(lengths.values())
    long = [of(path) for path, n in lengths.items() if n > 400 and "long because" not in path.read_text()]

    assert ordered[len(ordered) // 2] <= 160
    assert long == []
