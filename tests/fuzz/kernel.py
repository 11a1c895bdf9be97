"""Random texts through both twins: ``make fuzz RUNS=100000 SEED=1``.

The texts are mails of the generated mailbox with bytes flipped, dropped, doubled and spliced, and random
bytes, decoded as UTF-8 without the invalid ones. Any difference is printed with the input that reproduces it.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from random import Random
from typing import Literal

import numpy as np

from streamnb.base.batch import Batch, Scores
from streamnb.cli.demo.mailbox import mailbox
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.event_models import Multinomial
from streamnb.naive_bayes.event_models.smoothing import Dirichlet, Laplace, NoSmoothing, Smoothing
from streamnb.naive_bayes.features.entities import Whole
from streamnb.naive_bayes.features.readers import Category, CharacterGrams, Ends, Reader, WordPairs, Words
from streamnb.naive_bayes.features.shapes import Shapes
from streamnb.naive_bayes.features.strings import Strings
from streamnb.naive_bayes.features.tokenizer import Tokenizer
from streamnb.naive_bayes.model.view import View

PIECES = (
    b"\x00",
    b"\xcc\x81",
    b"\xe4\xb8\xad",
    b"\xf0\x9f\x91\x8d",
    b"\xe2\x80\x8d",
    b"\xc4\xb0",
    b"\n",
    b" ",
    b"http://",
    b"www.",
    b"@",
    b".",
    b"1,0",
)

RULES: tuple[Literal["unicode"], Literal["words"]] = ("unicode", "words")
WHOLE: tuple[Whole, ...] = ("numbers", "urls", "mail")
HEADS: tuple[Literal["calibrated"], Literal["product"]] = ("calibrated", "product")
WEIGHTS: tuple[Literal["counts"], Literal["boolean"], Literal["log"]] = ("counts", "boolean", "log")
UNKNOWN: tuple[Literal["skip"], Literal["smooth"]] = ("skip", "smooth")


def _mutated(data: bytes, random: Random) -> bytes:
    blob = bytearray(data)
    for _ in range(random.randrange(12)):
        at = random.randrange(len(blob) + 1)
        match random.randrange(5):
            case 0:
                blob[at:at] = random.choice(PIECES) * random.choice((1, 1, 2, 70))
            case 1:
                del blob[at : at + random.randrange(1, 9)]
            case 2:
                blob[at:at] = blob[at : at + random.randrange(1, 200)] * random.randrange(1, 4)
            case 3 if blob:
                blob[at % len(blob)] ^= 1 << random.randrange(8)
            case _:
                blob[at:at] = random.randbytes(random.randrange(1, 9))
    return bytes(blob)


def _text(mails: list[bytes], random: Random) -> str | None:
    match random.randrange(12):
        case 0:
            return None
        case 1:
            data = random.randbytes(random.randrange(200))
        case 2:
            return "".join(chr(random.randrange(0xD800)) for _ in range(random.randrange(60)))
        case 3:
            return "".join(chr(random.randrange(0xE000, 0x110000)) for _ in range(random.randrange(30)))
        case _:
            data = _mutated(random.choice(mails), random)
    return data.decode(errors="ignore")


def _twins(random: Random) -> tuple[NaiveBayes, NaiveBayes, str]:
    """Return a plain and a compiled model with the same random settings, and the settings as text."""
    head = random.choice(HEADS)
    views = []
    for i in range(random.randrange(1, 4)):
        fields = random.choice((("text",), ("subject", "text")))
        prefix = random.random() < 0.3
        readers: list[Reader] = [
            Words(fields, prefix),
            WordPairs(fields, prefix),
            CharacterGrams(fields, prefix, random.randrange(1, 6), random.choice((5, 40, 3000))),
            Ends(fields, prefix, random.randrange(1, 9)),
            Shapes(fields, prefix),
        ]
        if i:  # the first view must read text, because the calibrated head needs a text view
            readers += [
                Category("subject"),
                Strings(fields, random.choice((1, 4, 5, 16)), random.choice((1, 30, 500))),
            ]
        reader = random.choice(readers)
        smoothing: Smoothing = Laplace(random.choice((0.03, 0.1, 1.0)))
        if head == "product":
            smoothing = random.choice((smoothing, NoSmoothing(), Dirichlet(random.choice((1.0, 1000.0)))))
        weight = "counts" if isinstance(reader, Category) else random.choice(WEIGHTS)
        event = Multinomial(smoothing, weight, random.choice(UNKNOWN))
        if isinstance(reader, Strings):
            views.append(View(f"v{i}", reader))
            continue
        views.append(View(f"v{i}", reader, event))
    rule = random.choice(RULES)
    tokenizer = Tokenizer(
        rule,
        random.choice((2, 64)),
        random.choice((7, 65_536)),
        keep_whole=tuple(random.sample(WHOLE, random.randrange(4))) if rule == "unicode" else (),
        token_length_min=random.choice((1, 1, 2)),
        stop_words=random.choice(((), (), ("en",), ("de", "zh"))),
    )
    plain, twin = (
        NaiveBayes(views, head=head, tokenizer=tokenizer, raw=True, classes_max=4, compiled=compiled)
        for compiled in (False, True)
    )
    return plain, twin, f"head={head!r}, tokenizer={tokenizer!r}, views={views!r}"


def _equal(a: Scores, b: Scores) -> bool:
    names = [
        field.name for field in fields(a) if field.name not in {"classes", "raw_posterior", "explanations"}
    ]
    return a.classes == b.classes and all(
        np.array_equal(getattr(a, name), getattr(b, name), equal_nan=True) for name in names
    )


def fuzz(runs: int, seed: int) -> list[str]:
    """Send random messages through both twins, and return the differences.

    Parameters
    ----------
    runs : int
        How many messages.
    seed : int
        The same seed always gives the same messages.

    Returns
    -------
    list of str
        The settings and messages of each difference; empty if the twins agree.
    """
    random = Random(seed)
    mails = [str(mail["text"]).encode() for mail in mailbox(seed, 200)]
    differences, done = [], 0
    while done < runs:
        plain, twin, settings = _twins(random)
        for _ in range(random.randrange(1, 6)):
            n = random.randrange(1, 9)
            columns = {name: [_text(mails, random) for _ in range(n)] for name in ("text", "subject")}
            labels = [random.choice((None, "a", "b", "c", "d", "e")) for _ in range(n)]
            weights = [random.choice((1.0, 0.5, 0.1)) for _ in range(n)]
            batch = Batch(columns, labels, weights)
            a, b = plain.step(batch), twin.step(batch)
            done += n
            if not _equal(a, b) or plain.digest() != twin.digest():
                differences.append(f"{settings}\n  {batch!r}")
                break
    return differences


def main() -> None:
    """Run the fuzzer, print the differences, and fail if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    differences = fuzz(wanted.runs, wanted.seed)
    for difference in differences:
        print(difference)
    print(f"{wanted.runs} messages of seed {wanted.seed}: {len(differences)} differences")
    sys.exit(bool(differences))


if __name__ == "__main__":
    main()
