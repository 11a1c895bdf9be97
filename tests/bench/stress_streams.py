"""Streams made hard for `stress.py`, each of the real ones by one rule and a fixed seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.bench.common import Stream, read_stream

DELAY = 1_000  # messages
MAIL = ("enron1", "enron2", "enron4", "enron6")


@dataclass(slots=True)
class Hard:
    """A stream and what is hard about it.

    Parameters
    ----------
    stream : Stream
        With the labels that are learned.
    what : str
    delay : int
        A label is learned this many messages after its message was scored.
    wrong : range
        Messages whose labels are all wrong: learned, and not judged.
    """

    stream: Stream
    what: str
    delay: int = 0
    wrong: range = range(0)


def hard_streams(data: Path, wanted: list[str]) -> Iterator[Hard]:
    """Those wanted, made one after the other; all if none is named."""
    for name, (what, make) in HARD.items():
        if not wanted or name in wanted:
            made = make(data)
            hard = made if isinstance(made, Hard) else Hard(made, what)
            hard.stream.name = name
            yield hard


def _chosen(stream: Stream, rows: list[int]) -> Stream:
    return Stream(stream.name, [stream.texts[i] for i in rows], [stream.labels[i] for i in rows])


def _thinned(stream: Stream, shares: dict[str, float], seed: int = 0) -> Stream:
    """Of each class that share of the messages, chosen at random; the others whole."""
    random = Random(seed)
    return _chosen(
        stream, [i for i, label in enumerate(stream.labels) if random.random() < shares.get(label, 1.0)]
    )


def _shuffled(stream: Stream, seed: int = 0) -> Stream:
    rows = list(range(len(stream)))
    Random(seed).shuffle(rows)
    return _chosen(stream, rows)


def _rare(data: Path) -> Stream:
    mail = read_stream(data, "enron2")
    ham = mail.labels.count("ham")
    return _thinned(mail, {"spam": ham / 99 / (len(mail) - ham)})


def _noisy(data: Path) -> Stream:
    mail, random = read_stream(data, "enron1"), Random(0)
    other = {"ham": "spam", "spam": "ham"}
    mail.labels = [other[label] if random.random() < 0.1 else label for label in mail.labels]
    return mail


def _mailboxes(data: Path) -> Stream:
    """Which of four mailboxes a message was sent to."""
    texts, labels = [], []
    for name in MAIL:
        mail = read_stream(data, name)
        ham = [text for text, label in zip(mail.texts, mail.labels, strict=True) if label == "ham"][:1500]
        texts += ham
        labels += [name] * len(ham)
    return _shuffled(Stream("", texts, labels))


def _chain(data: Path) -> Stream:
    parts = [read_stream(data, name) for name in ("enron1", "enron6", "enron4", "enron2")]
    return Stream("", [t for p in parts for t in p.texts[:3000]], [y for p in parts for y in p.labels[:3000]])


def _late_class(data: Path) -> Stream:
    news = read_stream(data, "agnews")
    half = len(news) // 2
    return _chosen(news, [i for i, label in enumerate(news.labels) if i >= half or label != "scitech"])


def _wrong_for_a_while(data: Path) -> Hard:
    mail = read_stream(data, "enron1")
    wrong = range(2000, 2500)
    for i in wrong:
        mail.labels[i] = "ham" if mail.labels[i] == "spam" else "spam"
    return Hard(mail, "500 labels in a row wrong", wrong=wrong)


def _subjects(data: Path, name: str) -> Stream:
    mail = read_stream(data, name)
    mail.texts = [text.partition("\n")[0].removeprefix("Subject:") for text in mail.texts]
    return mail


def _reversed(data: Path) -> Stream:
    news = read_stream(data, "agnews")
    return Stream("", news.texts[::-1][:1000], news.labels[::-1][:1000])


_AGRARE = {"scitech": 0.3, "sports": 0.1, "world": 0.03}
HARD: dict[str, tuple[str, Callable[[Path], Stream | Hard]]] = {
    "enron2rare": ("1 % spam", _rare),
    "enron1noise": ("10 % of the labels wrong", _noisy),
    "enron1wrong": ("500 labels in a row wrong", _wrong_for_a_while),
    "enron1late": (
        "labels 1,000 messages late",
        lambda data: Hard(read_stream(data, "enron1"), "labels 1,000 messages late", DELAY),
    ),
    "agnewslate": (
        "labels 1,000 messages late",
        lambda data: Hard(read_stream(data, "agnews"), "labels 1,000 messages late", DELAY),
    ),
    "mailbox4": ("which of four mailboxes", _mailboxes),
    "chain": ("four mailboxes one after another", _chain),
    "enron6shuf": ("shuffled", lambda data: _shuffled(read_stream(data, "enron6"))),
    "agrare": ("classes at 1, .3, .1, .03", lambda data: _thinned(read_stream(data, "agnews"), _AGRARE)),
    "agnew": ("a class appears at half-way", _late_class),
    "agrev": ("reversed, 1,000 messages", _reversed),
    "subj1": ("subject lines of enron1", lambda data: _subjects(data, "enron1")),
    "subj6": ("subject lines of enron6", lambda data: _subjects(data, "enron6")),
}
