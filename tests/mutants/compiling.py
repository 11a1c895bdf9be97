"""Compile one extension module of a copy again, with the options that `pyproject.toml` has for it."""

from __future__ import annotations

import subprocess
import sysconfig
import tomllib
from pathlib import Path

from tests.mutants.catalogue import Mutant, NotAMutantError

_PROGRAM = """
import sys
from Cython.Build import cythonize
from setuptools import Extension, setup
name, source, *options = sys.argv[1:]
sys.argv[1:] = ["--quiet", "build_ext", "--inplace"]
setup(ext_modules=cythonize([Extension(name, [source], extra_compile_args=options)], quiet=True))
"""


def library(copy: Path, mutant: Mutant) -> Path:
    """Return where the compiled module of a mutant's file lies."""
    return copy / f"{_module(mutant).replace('.', '/')}{sysconfig.get_config_var('EXT_SUFFIX')}"


def compiled(copy: Path, mutant: Mutant, builder: str) -> None:
    """Compile the module.

    Parameters
    ----------
    copy : Path
    mutant : Mutant
    builder : str
        A Python of the same version that has Cython and setuptools.

    Raises
    ------
    NotAMutantError
        It was not compiled.
    """
    name = _module(mutant)
    settings = tomllib.loads((copy / "pyproject.toml").read_text())
    modules = {one["name"]: one for one in settings["tool"]["setuptools"]["ext-modules"]}
    if name not in modules:
        raise NotAMutantError(f"Mutant {mutant.name}: `pyproject.toml` has no module {name}.")
    source, options = modules[name]["sources"][0], modules[name]["extra-compile-args"]
    # In a folder without `pyproject.toml`, or setuptools would build all modules.
    aside = copy / "pyproject.toml"
    hidden = aside.rename(copy / "pyproject.toml.aside")
    try:
        library(copy, mutant).unlink(missing_ok=True)
        command = [builder, "-c", _PROGRAM, name, source, *options]
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    finally:
        hidden.rename(aside)
    if done.returncode or not library(copy, mutant).exists():
        raise NotAMutantError(f"Mutant {mutant.name} was not compiled: {done.stderr.strip()[-600:]}")


def _module(mutant: Mutant) -> str:
    return mutant.module or mutant.file.removesuffix(".pyx").replace("/", ".")
