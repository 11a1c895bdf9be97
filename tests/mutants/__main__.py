"""Run the tests against mutants of streamnb: ``python -m tests.mutants [--only NAME] [--list] [--jobs N]``.

A mutant is a defect, listed in a TOML file beside this one. For each mutant the checkout is copied, the
defect made in the copy, and the tests named for it run there: at least one must fail. Before that they all
run once without a mutant and must pass, because a test that fails anyway kills nothing.

The exit code is 0 if every mutant was killed, 1 if one survived, 2 if one could not be judged.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.mutants.catalogue import CHECKOUT, NotAMutantError, listed
from tests.mutants.trial import Verdict, judged, unmutated


def main(arguments: list[str] | None = None) -> int:
    """Run, print, return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description="Mutants that tests must kill."
    )
    parser.add_argument("--only", metavar="NAME", action="append", default=[], help="this mutant; repeatable")
    parser.add_argument("--list", action="store_true", help="print the names and the reasons, run nothing")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="copies that run at once (%(default)s)"
    )
    parser.add_argument(
        "--builder", default=sys.executable, metavar="PYTHON", help="has Cython and setuptools"
    )
    parser.add_argument("--catalogue", type=Path, metavar="FILE", help="a list of mutants in place of ours")
    options = parser.parse_args(arguments)
    try:
        mutants = listed(options.catalogue)
    except NotAMutantError as error:
        print(error, file=sys.stderr)
        return 2
    if unknown := set(options.only) - {mutant.name for mutant in mutants}:
        print(f"No mutant has the name {', '.join(sorted(unknown))}. `--list` prints them.", file=sys.stderr)
        return 2
    wanted = [mutant for mutant in mutants if not options.only or mutant.name in options.only]
    if options.list:
        for mutant in wanted:
            print(f"{mutant.name:40} {mutant.file}: {mutant.why}")
        return 0
    if fault := unmutated(CHECKOUT, wanted):
        print(f"The tests fail without a mutant, so nothing can be judged:\n{fault}", file=sys.stderr)
        return 2
    counts = dict.fromkeys(Verdict, 0)
    for mutant, verdict, seconds, why in judged(CHECKOUT, wanted, jobs=options.jobs, builder=options.builder):
        counts[verdict] += 1
        print(f"{verdict.value:12} {mutant.name} ({seconds:.0f} s){f': {why}' if why else ''}", flush=True)
    print(", ".join(f"{n} {verdict.value}" for verdict, n in counts.items()) + f" of {len(wanted)} mutants")
    if counts[Verdict.UNJUDGED]:
        return 2
    return 1 if counts[Verdict.SURVIVED] else 0


if __name__ == "__main__":
    sys.exit(main())
