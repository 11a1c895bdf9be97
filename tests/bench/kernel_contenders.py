"""What `kernel.py` times on a stream: our twins, the peers, and reading the text as the limit.

Each contender makes one pass, from texts in memory to scored and learned, and says how many seconds of the
processor that took, its own and its children's. On one core that is the time it takes when nobody else wants
the core; by the wall clock a busy machine would slow the long passes and spare the short ones. A contender is
new at every pass: making it and making ready what it needs beforehand are not counted.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from streamnb.base.batch import Batch, Label
from streamnb.cli.peers.sklearn import FEATURES
from streamnb.cli.peers.vowpal import OPTIONS, own_words
from streamnb.config import Settings, load_settings
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from tests.bench.common import ROOT, Stream

VW = f"{OPTIONS} -l 5"
BATCH = 1_000  # messages
SKLEARN_BATCH = 256
WC_SHORT_BYTES, WC_LONG_BYTES = 8 << 20, 72 << 20

PLAIN = "spam.toml, plain twin"
TEXTBOOK, SPAM, ACCURATE = "textbook.toml", "spam.toml", "spam-accurate.toml"
RIVER = "river"
SKLEARN = "scikit-learn, batches of 256"
VOWPAL = "vowpalwabbit"
VOWPAL_READY = "vowpalwabbit, input lines ready"
BOGOFILTER = "bogofilter, batches of 1,000"
WC = "wc -w"

Pass = Callable[[], float]
"""One pass; seconds of the processor."""


def processor_seconds() -> float:
    """What this process has used so far, and its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def built(
    settings: Settings, *, compiled: bool, classes_max: int = 256, max_tokens: int | None = None
) -> NaiveBayes:
    """A configuration's model by the twin that is asked for, whatever the installation would choose.

    Raises
    ------
    ValueError
        The compiled twin was not built.
    """
    return NaiveBayes(
        settings.views,
        prior=settings.prior,
        head=settings.model.head,
        classes_max=classes_max,
        max_tokens=max_tokens,
        tokenizer=settings.tokens,
        compiled=compiled,
    )


def shipped(name: str) -> Settings:
    """The settings of `configs/<name>`."""
    return load_settings(ROOT / "configs" / name)


def contenders(stream: Stream, folder: Path) -> dict[str, Pass]:
    """Everything that is compared on a stream: peers, ours, the limit; what is not installed is not in it.

    Parameters
    ----------
    stream : Stream
    folder : Path
        For the files that wc and bogofilter need.
    """
    found: dict[str, Pass] = {
        RIVER: partial(river_pass, stream),
        SKLEARN: partial(sklearn_pass, stream),
        VOWPAL: partial(vowpal_pass, stream),
        VOWPAL_READY: partial(vowpal_pass, stream, ready=True),
    }
    if shutil.which("bogofilter") and len(stream.classes) == 2:
        mailboxes = bogofilter_mailboxes(stream)
        found[BOGOFILTER] = partial(bogofilter_pass, mailboxes, folder)
    found[PLAIN] = partial(our_pass, stream, shipped(SPAM), compiled=False)
    for name in (ACCURATE, SPAM, TEXTBOOK):
        found[name] = partial(our_pass, stream, shipped(name), compiled=True)
    if shutil.which("wc"):
        files = wc_files(stream, folder)
        found[WC] = partial(wc_pass, *files)
    return found


def our_pass(stream: Stream, settings: Settings, *, compiled: bool) -> float:
    """Our own model, in batches of 1,000."""
    model = built(settings, compiled=compiled)
    labels: list[Label | None] = [*stream.labels]
    began = processor_seconds()
    for i in range(0, len(stream), BATCH):
        model.step(Batch({"text": stream.texts[i : i + BATCH]}, labels[i : i + BATCH]))
    return processor_seconds() - began


def river_model() -> tuple[Callable[[str], object], Callable[[str, str], object]]:
    """How a new river model, multinomial naive Bayes behind a bag of words, scores and how it learns."""
    from river.compose import Pipeline
    from river.feature_extraction import BagOfWords
    from river.naive_bayes import MultinomialNB

    model: Any = Pipeline(  # its annotations know mappings only, and a bag of words takes text
        BagOfWords(lowercase=True, strip_accents=False, tokenizer_pattern=r"\w\w+"),
        MultinomialNB(alpha=1.0),  # type: ignore[no-untyped-call]
    )
    return model.predict_proba_one, model.learn_one


def river_pass(stream: Stream) -> float:
    """Pass the stream through river, message by message, which is its way."""
    predict, learn = river_model()
    began = processor_seconds()
    for text, label in zip(stream.texts, stream.labels, strict=True):
        predict(text)
        learn(text, label)
    return processor_seconds() - began


def sklearn_pass(stream: Stream) -> float:
    """scikit-learn: a batch is scored, then learned, so that scores lag by up to a batch."""
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.naive_bayes import MultinomialNB

    reader = HashingVectorizer(n_features=FEATURES, alternate_sign=False, norm=None)
    model, classes = MultinomialNB(), sorted(stream.classes)
    began = processor_seconds()
    for i in range(0, len(stream), SKLEARN_BATCH):
        features = reader.transform(stream.texts[i : i + SKLEARN_BATCH])
        if i:
            model.predict_proba(features)
        model.partial_fit(features, stream.labels[i : i + SKLEARN_BATCH], classes=classes)
    return processor_seconds() - began


def vowpal_lines(stream: Stream) -> list[str]:
    """Input lines with their labels; vowpalwabbit splits the words itself, at white space."""
    two = len(stream.classes) == 2
    answers = {label: f"{2 * c - 1 if two else c + 1} " for c, label in enumerate(stream.classes)}
    pairs = zip(stream.texts, stream.labels, strict=True)
    return [answers[label] + own_words(text) for text, label in pairs]


def vowpal_pass(stream: Stream, *, ready: bool = False) -> float:
    """Logistic regression by vowpalwabbit; learning an example leaves the prediction from before it."""
    from vowpalwabbit import Workspace

    n = len(stream.classes)
    model = Workspace(VW if n == 2 else f"{VW} --oaa {n} --probabilities")
    lines = vowpal_lines(stream) if ready else []
    began = processor_seconds()
    for line in lines or vowpal_lines(stream):
        example = model.parse(line)
        model.learn(example)
        if n == 2:
            example.get_simplelabel_prediction()
        else:
            example.get_prediction()
        model.finish_example(example)
    seconds = processor_seconds() - began
    model.finish()
    return seconds


def bogofilter_mailboxes(stream: Stream) -> list[tuple[bytes, bytes, bytes]]:
    """Of each batch, mailboxes of all its messages, of the first class's and of the second's."""
    first = stream.classes[0]
    found = []
    for i in range(0, len(stream), BATCH):
        pairs = list(zip(stream.texts[i : i + BATCH], stream.labels[i : i + BATCH], strict=True))
        found.append(
            (
                _mailbox([text for text, _ in pairs]),
                _mailbox([text for text, label in pairs if label == first]),
                _mailbox([text for text, label in pairs if label != first]),
            )
        )
    return found


def _mailbox(texts: Sequence[str]) -> bytes:
    parts = [
        f"From a@b Thu Jan  1 00:00:00 1970\nSubject: \n\n{text.replace(chr(10) + 'From ', ' From ')}\n\n"
        for text in texts
    ]
    return "".join(parts).encode("utf-8", "surrogatepass")


def bogofilter_pass(mailboxes: list[tuple[bytes, bytes, bytes]], folder: Path) -> float:
    """A batch scored by one bogofilter and learned by two: a process a message costs far more."""
    with tempfile.TemporaryDirectory(dir=folder) as words:
        command = ["bogofilter", "-C", "-d", words, "--db-transaction=no", "-M"]
        began = processor_seconds()
        for i, (everything, first, second) in enumerate(mailboxes):
            if i:
                _run([*command, "-T"], everything)
            _run([*command, "-n"], first)
            _run([*command, "-s"], second)
        return processor_seconds() - began


def _run(command: list[str], data: bytes) -> None:
    answer = subprocess.run(command, input=data, capture_output=True, check=False)
    assert answer.returncode <= 2, answer.stderr  # 0 to 2 are verdicts


def wc_files(stream: Stream, folder: Path) -> tuple[Path, Path, int]:
    """The texts, a line each, over and over: a short file, a long one, and how many copies lie between."""
    once = "".join(f"{text}\n" for text in stream.texts).encode("utf-8", "surrogatepass")
    short, long = WC_SHORT_BYTES // len(once) + 1, WC_LONG_BYTES // len(once) + 2
    paths = folder / f"{stream.name}-short.txt", folder / f"{stream.name}-long.txt"
    for path, copies in zip(paths, (short, long), strict=True):
        path.write_bytes(once * copies)
    return *paths, long - short


def wc_pass(short: Path, long: Path, copies: int) -> float:
    """GNU wc counting words: the long file less the short one, so that its start is not counted."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    seconds = []
    for path in (short, long):
        began = processor_seconds()
        subprocess.run(["wc", "-w", str(path)], env=environment, capture_output=True, check=True)
        seconds.append(processor_seconds() - began)
    return (seconds[1] - seconds[0]) / copies
