"""Hostile records through decoding, scoring and learning: ``python -m tests.fuzz.records --runs N --seed S``.

A record is a message that was changed a few times (bytes changed, cut or doubled, values replaced by odd
ones), or random bytes. No record may raise an error, each must be scored or become a dead letter, and
every score must be JSON with posteriors that sum to 1. A failure names the seed and the batch that reproduce
it.
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections import Counter

import orjson

from streamnb.base.offsets import Account
from streamnb.base.record import Headers, Partition, RecordBatch
from streamnb.engine.dead_letters import DeadLetterLimits, DeadLetters
from streamnb.engine.delivery import Delivery
from streamnb.engine.metrics import Metrics
from streamnb.engine.model import Model
from streamnb.engine.processing import Processing
from streamnb.engine.progress import Progress
from streamnb.engine.settings import Pace
from streamnb.evaluation.live import LiveEvaluation
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.model.view import TEXT_ONLY
from streamnb.transports.memory import MemoryClock, MemoryLog, MemorySink
from streamnb.wire.message import Decoder, MessageFields
from streamnb.wire.score import Output

BATCH = 500
P0 = Partition("fuzz", 0)
ODD_VALUES = (
    *(b"null", b"true", b"-0.0", b"1e308", b"1e400", b"NaN", b"5e-324", b"9007199254740993", b"[]", b"{}"),
    *(
        b'""',
        b'"\\ud800"',
        b'"\\u0000"',
        b'"\\u202e\\ufdfa"',
        b'"a\\u0301\\u0327"',
        b"[[[[]]]]",
        b'"%s %d {0}"',
    ),
    *(b'"\xf0\x9f\x92\xb0"', b'"\xff"', b'"' + b"x" * 300 + b'"', b'"' + b"a b " * 300 + b'"', b"1" * 400),
)
KEYS = (b'"id"', b'"text"', b'"label"', b'"weight"', b'"amount"', b'"kind"', b'"more"')
WORDS = (
    "win",
    "money",
    "now",
    "lunch",
    "noon",
    "prize",
    "free",
    "Ünïcode",
    "日本語",
    "٣",
    "a" * 90,
    "\u200d",
    "$1,000",
)
PIECES = (
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b"\\",
    b"\\u",
    b":",
    b",",
    b"\0",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"e999",
    b"-",
)


class Fuzz:
    """A fuzzer that sends random records through one model.

    Parameters
    ----------
    seed : int
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._offset = 0
        self._clock = MemoryClock()
        fields = MessageFields(weight="weight", number=("amount",), category=("kind",), bytes_max=4000)
        classifier = NaiveBayes(TEXT_ONLY, classes_max=8, max_tokens=5000)
        self._model = Model("fuzz", classifier, Decoder(fields))
        self._progress = Progress(accounts={P0: Account(0, 0)})
        self._metrics = Metrics()
        self._evaluation = LiveEvaluation()

    def run(self, records: int) -> Counter[str]:
        """Send records, and return how many there were, were scored and became dead letters.

        Raises
        ------
        AssertionError
            A record was lost or counted twice, or its score is wrong; the error names the seed.
        """
        counts: Counter[str] = Counter()
        for number in range(-(-records // BATCH)):
            draw = random.Random(f"{self._seed} {number}")
            values = [self._record(draw) for _ in range(min(BATCH, records - counts["records"]))]
            try:
                counts += self._batch(values, draw)
            except Exception as error:
                raise AssertionError(f"seed {self._seed}, batch {number}: {error!r}") from error
        return counts

    def _batch(self, values: list[bytes | None], draw: random.Random) -> Counter[str]:
        n, first = len(values), self._offset
        scores, aside = MemoryLog(), MemoryLog()
        delivery = Delivery(
            sink=MemorySink(scores),
            dead_letters=DeadLetters(MemorySink(aside), self._clock, DeadLetterLimits(ratio_max=1.0)),
            progress=self._progress,
            pace=Pace(),
            clock=self._clock,
        )
        processing = Processing(
            model=self._model,
            delivery=delivery,
            output=Output(),
            evaluation=self._evaluation,
            progress=self._progress,
            clock=self._clock,
            metrics=self._metrics,
        )
        headers: list[Headers] = [() if draw.random() < 0.95 else [("h\x00", b"\xff")] for _ in values]
        keys = [None if draw.random() < 0.5 else draw.randbytes(draw.randrange(9)) for _ in values]
        offsets = range(first, first + n)
        processing.process(RecordBatch(P0, offsets, values, keys, [-1] * n, headers, first + n))
        self._offset += n
        scored = [orjson.loads(record.value or b"") for record in scores.records(0)]
        put_aside = [int(dict(record.headers)["streamnb.offset"]) for record in aside.records(0)]
        for score in scored:
            total = math.fsum(score["posterior"].values())
            assert not score["posterior"] or abs(total - 1) < 1e-9, score
        seen = sorted([*(score["source"]["offset"] for score in scored), *put_aside])
        assert seen == list(offsets), "not every record was scored or put aside once"
        assert self._progress.accounts[P0].balance() == 0
        return Counter({"records": n, "scored": len(scored), "put aside": len(put_aside)})

    def _record(self, draw: random.Random) -> bytes | None:
        kind = draw.random()
        if kind < 0.01:
            return None
        if kind < 0.05:
            return draw.randbytes(draw.randrange(60))
        fields = {
            "id": draw.randrange(1 << 40),
            "text": " ".join(draw.choices(WORDS, k=draw.randrange(9))),
            "label": draw.choice(["spam", "ham", "list", None, f"class {draw.randrange(30)}"]),
            "amount": draw.choice([None, draw.gauss(0, 1e3), draw.expovariate(1e-9)]),
        }
        value = orjson.dumps(fields)
        if kind < 0.5:
            return value
        for _ in range(draw.randrange(1, 4)):
            value = self._mutated(value, draw)
        return value

    @staticmethod
    def _mutated(value: bytes, draw: random.Random) -> bytes:
        at = draw.randrange(len(value) + 1)
        kind = draw.randrange(6)
        if kind == 0:
            return value[:at] + draw.choice(PIECES) + value[at:]
        if kind == 1:
            return value[:at]
        if kind == 2:
            return value[:at] + draw.randbytes(1) + value[at + 1 :]
        if kind == 3:
            return value + value[at:]
        odd = draw.choice(KEYS) + b":" + draw.choice(ODD_VALUES)
        return value[:-1] + b"," + odd + b"}" if kind == 4 else b"{" + odd + b"," + value[1:]


def main() -> None:
    """Run the fuzzer, and print its counts and its speed."""
    parser = argparse.ArgumentParser(description="Send hostile records through decode, score, learn, encode.")
    parser.add_argument("--runs", type=int, default=1_000_000, help="records (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="%(default)s")
    options = parser.parse_args()
    began_s = time.perf_counter()
    counts = Fuzz(options.seed).run(options.runs)
    took_s = time.perf_counter() - began_s
    print(f"{dict(counts)} in {took_s:.0f} s, {counts['records'] / took_s:,.0f}/s; seed {options.seed}")


if __name__ == "__main__":
    main()
