"""How the compiled modules of `pyproject.toml` are built: on all cores, for an install is mostly compiling.

Everything else is in `pyproject.toml`. Cython translates in processes, because it is not made for threads;
only then the compilers run side by side. The code behind `double[:] x`, which is longer than most modules, is
compiled once, as a module that the others share.
"""

import os
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SHARED = "streamnb._cython"


class InParallel(build_ext):
    """Builds the compiled modules on all cores."""

    def finalize_options(self) -> None:
        """Add the shared module, which has no source of its own, to those of `pyproject.toml`."""
        modules = self.distribution.ext_modules
        if all(module.name != SHARED for module in modules):
            source = SHARED.replace(".", "/") + ".c"
            modules.append(Extension(SHARED, [source], extra_compile_args=["-O1", "-g0"], optional=True))
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def build_extensions(self) -> None:
        """Translate every module, then compile them, the longest first."""
        cythonize(
            self.extensions,
            nthreads=self.parallel,
            force=self.force,
            quiet=True,
            shared_utility_qualified_name=SHARED,
            compiler_directives={"emit_code_comments": False},
        )
        self.extensions.sort(key=lambda module: Path(module.sources[0]).stat().st_size, reverse=True)
        super().build_extensions()


if __name__ == "__main__":  # where processes are not forked, each imports this file
    setup(cmdclass={"build_ext": InParallel})
