"""What an installation holds, and what it says where a compiler is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
AT_ROOT = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE")  # which a build reads
MAIL = b'{"id": "a", "text": "win money", "label": "spam"}\n'


def _python(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own, which finds `folder` first and none of this process's settings."""
    inherited = {
        key: value for key, value in os.environ.items() if key not in {"STREAMNB_PURE", "LD_PRELOAD"}
    }
    return subprocess.run(
        [sys.executable, "-P", *words],
        cwd=folder,
        env=inherited | {"PYTHONPATH": str(folder)} | env,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def _copy(folder: Path) -> Path:
    """The repository as it is checked out, without what was built in it."""
    copy = folder / "copy"
    shutil.copytree(
        ROOT / "streamnb", copy / "streamnb", ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__")
    )
    for name in AT_ROOT:
        shutil.copy(ROOT / name, copy)
    return copy


def _translated(copy: Path) -> None:
    """Give a copy the C that Cython wrote of the same files at `make install`, but for the first module's.

    Without it Cython would translate all of them again, which takes longer than everything else here.
    """
    first, *others = sorted((ROOT / "streamnb").rglob("*.pyx"))
    newest = max(path.stat().st_mtime for path in (ROOT / "streamnb").rglob("*.p[xy][xd]"))
    for c in (module.with_suffix(".c") for module in others):
        if c.exists() and c.stat().st_mtime > newest:
            shutil.copy(
                c, copy / c.relative_to(ROOT)
            )  # newer than what Cython came with, or it would not count
    assert not (copy / first.relative_to(ROOT)).with_suffix(".c").exists()


def _wheel(copy: Path, folder: Path, tools: Path, **env: str) -> Path:
    """A wheel of a copy of the repository, as ``pip`` builds it with what it needs in `tools`."""
    pip = ("-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--check-build-dependencies")
    env["PYTHONPATH"] = f"{folder}:{tools}"
    done = _python(folder, *pip, "--wheel-dir", str(folder), str(copy), **env)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


def _run(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """The engine over one line of JSON."""
    (folder / "mail.jsonl").write_bytes(MAIL)
    (folder / "run.toml").write_text(
        f"""
        [model]
        name = "build"
        [source]
        kind = "jsonl"
        path = "{folder / "mail.jsonl"}"
        [sink]
        kind = "jsonl"
        path = "{folder / "scores.jsonl"}"
        [engine]
        start = "earliest"
        [dead_letters.sink]
        kind = "jsonl"
        path = "{folder / "dead.jsonl"}"
        [snapshots]
        directory = "{folder / "snapshots"}"
        """,
        encoding="utf-8",
    )
    return _python(folder, "-m", "streamnb", "run", "run.toml", "--until-end", **env)


WHICH = """
from streamnb.naive_bayes import _kernel
from streamnb import TEXT_ONLY, NaiveBayes, errors
print(_kernel.compiled, NaiveBayes(TEXT_ONLY).state.compiled, errors.__file__)
"""


def test_a_variable_chooses_the_plain_twin() -> None:
    """``STREAMNB_PURE=1``, silently: it was asked for; 0 and nothing leave the kernel on."""
    for value, compiled in (("1", "False False"), ("0", "True True"), ("", "True True")):
        done = _python(ROOT, "-W", "error", "-c", WHICH, STREAMNB_PURE=value)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(compiled)


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `pyproject.toml` asks for to build, unless it is at hand: ``pip`` would install it for each build,
    and Cython would then translate everything again, for its own files would be newer than what it wrote.
    """
    folder = tmp_path_factory.mktemp("tools")
    if find_spec("Cython") is not None and find_spec("setuptools") is not None:
        return folder
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    done = _python(ROOT, "-m", "pip", "install", "--quiet", "--target", str(folder), *needed)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, tools: Path) -> Path:
    """Built with whatever compiler there is, kept from taking its time: speed is not looked at here."""
    folder = tmp_path_factory.mktemp("wheel")
    quick = folder / "cc"
    quick.write_text(f'#!/bin/sh\nexec {sysconfig.get_config_var("CC")} "$@" -O0\n')
    quick.chmod(0o755)
    copy = _copy(folder)
    _translated(copy)
    return _wheel(copy, folder, tools, CC=str(quick))


def test_a_wheel_holds_the_kernel_and_its_types_but_no_c(wheel: Path) -> None:
    """Each module compiled, each with its ``.pyi``; what Cython generated stays behind."""
    names = zipfile.ZipFile(wheel).namelist()
    for module in (path.relative_to(ROOT).with_suffix("") for path in (ROOT / "streamnb").rglob("*.pyx")):
        assert [n for n in names if n.startswith(f"{module}.") and n.endswith(".so")]
        assert f"{module}.pyi" in names
    assert [n for n in names if n.endswith(".c")] == []
    assert {"streamnb/py.typed", "streamnb/wire/schemas/score.schema.json"} <= set(names)
    assert {f"streamnb/configs/{path.name}" for path in (ROOT / "configs").iterdir()} <= set(names)
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"streamnb"}  # no tests, no docs


def test_what_a_wheel_holds_is_what_runs(wheel: Path, tmp_path: Path) -> None:
    """Unpacked elsewhere, it imports its own kernel and has nothing to warn of."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    done = _python(tmp_path, "-W", "error", "-c", WHICH)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:2] == ["True", "True"]
    assert done.stdout.split()[2].startswith(str(tmp_path))
    assert "fifty to eighty times slower" not in _run(tmp_path).stderr
    missing = _python(tmp_path, "-m", "streamnb", "check", "spam.toml").stderr
    assert f"copy the example {tmp_path}/streamnb/configs/spam.toml" in missing


def test_without_a_compiler_it_installs_runs_and_says_what_that_costs(
    wheel: Path, tools: Path, tmp_path: Path
) -> None:
    """A wheel without the kernel; a warning at import that names the reason, and the engine's first line."""
    copy = tmp_path / "copy"  # with the C that Cython made of it already
    shutil.copytree(wheel.parent / "copy", copy, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    assert list(copy.rglob("*.c"))
    built = _wheel(copy, tmp_path, tools, CC="/bin/false", CXX="/bin/false")
    zipfile.ZipFile(built).extractall(tmp_path)
    assert not [n for n in zipfile.ZipFile(built).namelist() if n.endswith((".so", ".c"))]
    imported = _python(tmp_path, "-c", WHICH)
    assert imported.returncode == 0, imported.stderr
    assert imported.stdout.split()[:2] == ["False", "False"]
    assert "UserWarning: streamnb runs in plain Python, fifty to eighty times slower" in imported.stderr
    assert "install a C compiler" in imported.stderr
    done = _run(tmp_path)
    assert done.returncode == 0, done.stderr
    logged = [line for line in done.stderr.splitlines() if " streamnb" in line and line[:2] == "20"]
    assert " WARNING streamnb: the model runs in plain Python, fifty to eighty times slower: " in logged[0]
    assert "the kernel was not built" in logged[0]
    assert (tmp_path / "scores.jsonl").stat().st_size > 0


def test_an_sdist_holds_what_a_build_and_the_tests_need(tools: Path, tmp_path: Path) -> None:
    """Sources, headers, types, examples, tests and documents; nothing that was built."""
    copy, built = tmp_path / "copy", (".so", ".c", ".pyc")
    folders = (".ci", "configs", "deploy", "docs", "streamnb", "tests")
    for name in folders:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns(".*cache", "__pycache__"))
    for name in (*AT_ROOT, "Makefile", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
        shutil.copy(ROOT / name, copy)
    needed = {str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()}
    done = _python(copy, "setup.py", "--quiet", "sdist", PYTHONPATH=str(tools))
    assert done.returncode == 0, done.stderr
    with tarfile.open(next((copy / "dist").glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {name for name in needed if not name.endswith(built)} - names == set()
    assert {name for name in names if name.endswith(built)} == set()


def test_every_dependency_that_is_tested_has_one_version() -> None:
    """`make install` takes it from `.ci/constraints.txt`; each satisfies what `pyproject.toml` asks for."""
    lines = (ROOT / ".ci" / "constraints.txt").read_text().splitlines()
    pinned = {canonicalize_name(name): version for name, _, version in (one.partition("==") for one in lines)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for line in (
        *project["dependencies"],
        *(one for name in extras if name != "docs" for one in extras[name]),
    ):
        needed = Requirement(line)
        if needed.name != "streamnb":
            assert pinned[canonicalize_name(needed.name)] in needed.specifier, line
    assert "--constraint .ci/constraints.txt" in (ROOT / "Makefile").read_text()
