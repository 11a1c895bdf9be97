"""The demo's stage: the engine on an embedded broker, between a writer of mail and a reader of scores.

There are three parts, as in a real deployment, each with its own Kafka client: a thread that writes mail to
a topic, the engine, and a thread that reads the scores. The writer stays less than `AHEAD_MAX` messages ahead
of the reader, because the embedded broker keeps a short log.
"""

from __future__ import annotations

import math
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from typing import Self

import orjson
from rich.console import Console
from rich.text import Text

from streamnb.cli.demo.mailbox import mailbox
from streamnb.config import build_engine, decode_settings
from streamnb.engine import Engine, Metrics
from streamnb.errors import SettingsError, StreamnbError, TransportError
from streamnb.evaluation import LOG_LOSS_FLOOR
from streamnb.transports.embedded import EmbeddedBroker
from streamnb.transports.kafka import KafkaSink, KafkaSource

AHEAD_MAX = 2000
REPORT_EVERY = 200
NONSENSE_EVERY = 300  # send a record that is not a message, to show a dead letter
TERMINAL_RATE = 40.0  # messages per second that a person can follow

Mail = Mapping[str, str | None]


class Demo:
    """The broker, the engine and both threads; use it in a ``with`` block.

    Parameters
    ----------
    messages : int, optional
        Number of messages; without it the demo runs until it is stopped.
    seed : int
    rate : float, optional
        Messages per second, 0 for as fast as possible; by default `TERMINAL_RATE` on a terminal, otherwise 0.
    dataset : {"sms", "trec07"}, optional
        One of river's data sets instead of the generated mailbox.
    quiet : bool
        Print nothing.

    Raises
    ------
    StreamnbError
        The embedded broker does not start, or the data set is not available.
    """

    def __init__(
        self,
        *,
        messages: int | None = None,
        seed: int = 0,
        rate: float | None = None,
        dataset: str | None = None,
        quiet: bool = False,
    ) -> None:
        self.console = Console(quiet=quiet, highlight=False, soft_wrap=True)
        self.messages = messages
        if rate is None:
            rate = TERMINAL_RATE if self.console.is_terminal and not quiet else 0.0
        self.rate = rate
        self._stream = stream(dataset, seed, messages)
        self._sent: dict[str, Mail] = {}
        self._produced = self._scored = self._judged = self._correct = 0
        self._loss = 0.0
        self._known: set[str] = set()
        self._everything_sent = threading.Event()
        self._stopped = threading.Event()
        self._failure: StreamnbError | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            broker = stack.enter_context(EmbeddedBroker({"mail": 1, "scores": 1, "dead-letters": 1}))
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="streamnb-demo-"))
            self.client = broker.client
            settings = decode_settings(
                {
                    "model": {"name": "demo"},
                    "kafka": dict(broker.client),
                    "source": {"kind": "kafka", "topics": ["mail"]},
                    "sink": {"kind": "kafka", "topic": "scores"},
                    "dead_letters": {"sink": {"kind": "kafka", "topic": "dead-letters"}},
                    "engine": {"start": "earliest", "poll_timeout_ms": 50, "batch_records_max": 200},
                    "snapshots": {"directory": directory, "interval_s": 5.0},
                },
                "the demo",
            )
            self.engine: Engine = build_engine(settings, metrics=Metrics())
            stack.callback(self.engine.close)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._stack.close()

    def stop(self) -> None:
        """Stop the demo after the engine's current batch."""
        self._stopped.set()
        self.engine.stop()

    def run(self) -> dict[str, object]:
        """Run until every message is scored or `stop` is called, and return the summary.

        Raises
        ------
        StreamnbError
            One of the three parts failed.
        """
        threads = [
            threading.Thread(target=self._guarded, args=(part,), name=part.__name__, daemon=True)
            for part in (self._write_mail, self._read_scores)
        ]
        for thread in threads:
            thread.start()
        summary = self.engine.run()
        self._stopped.set()
        for thread in threads:
            thread.join(timeout=10)
        if self._failure is not None:
            raise self._failure
        figures: dict[str, object] = {
            "messages": self._produced,
            "scored": summary.scored,
            "learned": summary.learned,
            "dead_letters": summary.dead_letters,
            "snapshots": summary.snapshots,
            "accuracy": self._correct / self._judged if self._judged else None,
            "log_loss": self._loss / self._judged if self._judged else None,
            "seconds": summary.seconds,
            "messages_per_s": summary.records / summary.seconds if summary.seconds else None,
            "digest": summary.digest["all"],
        }
        self.console.print()
        for name, value in figures.items():
            self.console.print(
                f"{name:>15}  {value:.4g}" if isinstance(value, float) else f"{name:>15}  {value}"
            )
        return figures

    def _guarded(self, part: object) -> None:
        assert callable(part)
        try:
            part()
        except StreamnbError as error:
            self._failure = error
            self.stop()

    def _write_mail(self) -> None:
        sink = KafkaSink("mail", self.client)
        began_s = time.monotonic()
        try:
            for mail in self._stream:
                self._wait_for_my_turn(began_s)
                if self._stopped.is_set():
                    break
                self._produced += 1
                self._sent[str(mail["id"])] = mail
                values: list[bytes | None] = [orjson.dumps(message_of(mail))]
                if self._produced % NONSENSE_EVERY == 0:
                    values.append(b"this is not a message")
                sink.publish(0, values, [None] * len(values), [()] * len(values))
            sink.flush(10_000)
        finally:
            sink.close()
            self._everything_sent.set()

    def _wait_for_my_turn(self, began_s: float) -> None:
        while not self._stopped.is_set():
            is_due = self.rate == 0 or self._produced <= (time.monotonic() - began_s) * self.rate
            if is_due and self._produced - self._scored < AHEAD_MAX:
                return
            time.sleep(0.005)

    def _read_scores(self) -> None:
        source = KafkaSource(["scores"], self.client)
        try:
            source.open({}, "earliest")
            while not (self._everything_sent.is_set() and self._scored == self._produced):
                for records in source.poll(500, 50):
                    for value in records.values:
                        assert value is not None
                        self._show(orjson.loads(value))
                if self._stopped.is_set():
                    return
        finally:
            source.close()
        self.engine.stop()

    def _show(self, score: Mapping[str, object]) -> None:
        mail = self._sent.pop(str(score["id"]))
        self._scored += 1
        posterior, prediction, label = score["posterior"], score["prediction"], mail["label"]
        assert isinstance(posterior, dict)
        if label is not None:
            if label in self._known:
                self._judged += 1
                self._correct += prediction == label
                self._loss -= math.log(max(posterior[label], LOG_LOSS_FLOOR))
            self._known.add(label)
        if mail.get("story"):
            self.console.print(f"\n  --- {mail['story']} ---\n", style="bold cyan")
        self.console.print(_line(mail, posterior, prediction, score["unknown_tokens"]))
        if self._scored % REPORT_EVERY == 0 and self._judged:
            self.console.print(
                f"\n  {self._scored} scored, accuracy {self._correct / self._judged:.3f}, "
                f"log loss {self._loss / self._judged:.3f}, {self.engine.summary.snapshots} snapshots\n",
                style="bold",
            )


def _line(mail: Mail, posterior: Mapping[str, float], prediction: object, unknown: object) -> Text:
    label = mail["label"]
    mark, style = (
        ("?", "dim") if label is None else ("=", "green") if label == prediction else ("x", "bold red")
    )
    p = posterior.get("spam")
    line = Text(f"{'-' if p is None else f'{p:.3f}':>6} {prediction or '-':>4} ")
    line.append(mark, style=style)
    line.append(f" {unknown!s:>2} new  ", style="dim")
    text = " ".join(str(mail["text"]).split())
    line.append(text if len(text) < 100 else text[:99] + "…")
    return line


def message_of(mail: Mail) -> dict[str, str]:
    """Return the part of a mail that is sent to the topic: id, text and label, without the story."""
    parts = {name: mail[name] for name in ("id", "text", "label")}
    return {name: part for name, part in parts.items() if part is not None}


def stream(dataset: str | None, seed: int, n: int | None) -> Iterator[Mail]:
    """Return the demo's mail, generated or from one of river's data sets: `n` messages, or without end."""
    if dataset is None:
        return mailbox(seed=seed, n=n, neurips_at=500 if n is None else n // 2)
    return islice(_of_river(dataset), n)


def _of_river(name: str) -> Iterator[Mail]:
    """Yield the messages of one of river's data sets; river downloads it the first time.

    Raises
    ------
    SettingsError
        The name is not one of the two data sets.
    TransportError
        The data set cannot be downloaded.
    """
    from river import datasets

    kinds = {"sms": datasets.SMSSpam, "trec07": datasets.TREC07}
    if name not in kinds:
        raise SettingsError(
            f"There is no data set `{name}`.", "Choose sms or trec07, or leave --dataset out."
        )
    data = kinds[name]()  # type: ignore[no-untyped-call] # river's data sets have no types
    try:
        if not data.is_downloaded:
            data.download(verbose=False)  # type: ignore[no-untyped-call] # likewise
    except OSError as error:
        raise TransportError(
            f"The data set `{name}` cannot be downloaded: {error}.",
            "Leave --dataset out: the generated mailbox needs no network.",
        ) from error
    for i, (x, y) in enumerate(data, 1):
        text = "\n".join(str(x[field]) for field in ("subject", "body") if field in x)
        yield {"id": f"{name}-{i}", "text": text, "label": "spam" if y else "ham"}
