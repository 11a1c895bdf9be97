"""A refused record is never silent: the first of each reason is logged, and a useless run ends with 65."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from streamnb.engine.dead_letters import DeadLetterLimits, DeadLetters
from streamnb.engine.guard import Guard, GuardSettings
from streamnb.engine.notices import INTERVAL_S, Notices
from streamnb.engine.settings import EngineSettings, Pace
from streamnb.errors import DataError
from streamnb.naive_bayes import TEXT_ONLY, NaiveBayes, Tokenizer
from streamnb.transports.memory import END, MemoryClock, MemorySink
from streamnb.wire.message import Decoder, MessageFields
from tests.engine.test_engine import Rig, message, rig

AVRO = b"\x00\x00\x00\x00\x07\x02a"
PLAIN = b"win money"


@pytest.fixture
def said() -> Iterator[list[str]]:
    """The warnings of the engine so far, in a list that grows."""
    found: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("streamnb.engine")
    logger.addHandler(handler)
    yield found
    logger.removeHandler(handler)


def letters(it: Rig, ratio_max: float = 0.5) -> DeadLetters:
    """Return dead letters under the limit that a configuration has by default."""
    return DeadLetters(MemorySink(it.aside), it.clock, DeadLetterLimits(ratio_max=ratio_max))


def test_N1_the_first_dead_letter_of_each_reason_is_logged_with_its_address(said: list[str]) -> None:
    """The others of that reason are counted at the end of the run, and once a minute before."""
    it = rig([message(0, "win", "spam"), PLAIN, AVRO, PLAIN, PLAIN, b'{"text": 7}', None])
    it.run()
    first = "dead letters, json_syntax: the first is memory-0 @ 1: The record is not one JSON document: "
    assert said[0].startswith(first)
    assert said[1].startswith(
        "dead letters, schema_registry: the first is memory-0 @ 2: The record is framed"
    )
    assert said[2:] == [
        "dead letters, schema: the first is memory-0 @ 5: Field `text` must be a string, not a number.",
        "dead letters, tombstone: the first is memory-0 @ 6: The record has no value.",
        "dead letters, further ones in 0 s: 2 json_syntax",
    ]


def test_N1_further_ones_are_counted_once_a_minute(said: list[str]) -> None:
    """A flood of a million bad records is one line a minute."""
    clock = MemoryClock()
    notices = Notices("dead letters", clock)
    for second in range(150):
        for kind in ("schema", "label"):
            notices.note(kind, f"mail-0 @ {second}", "It is bad.")
        notices.tend()
        clock.advance(1.0)
    notices.finish()
    assert said[:2] == [
        "dead letters, schema: the first is mail-0 @ 0: It is bad.",
        "dead letters, label: the first is mail-0 @ 0: It is bad.",
    ]
    assert said[2:] == [
        f"dead letters, further ones in {INTERVAL_S:.0f} s: 60 schema, 60 label",
        f"dead letters, further ones in {INTERVAL_S:.0f} s: 60 schema, 60 label",
        "dead letters, further ones in 30 s: 29 schema, 29 label",
    ]


@pytest.mark.parametrize("value", [AVRO, PLAIN, b"spam,win money", b'{"payload": {"text": "win"}}'])
def test_N1_a_stream_whose_first_hundred_records_are_refused_stops(value: bytes) -> None:
    """It stops long before 10,000 records, names the reason, keeps no snapshot, delivers the dead letters."""
    it = rig([value] * 1_500)
    with pytest.raises(DataError, match=r"All of the first 105 records .*memory-0 @ 0: ") as raised:
        it.run(dead_letters=letters(it), pace=Pace())
    assert raised.value.exit_code == 65
    assert "`[message]`" in raised.value.hint
    assert it.store().newest() is None
    assert it.aside.end == [105]  # polls of 7 records


def test_N1_one_message_among_the_first_hundred_is_enough_to_go_on() -> None:
    """A restart among bad records is not a first start either, though its run ends with an error."""
    it = rig([message(0, "win", "spam"), *[PLAIN] * 300])
    assert it.run(dead_letters=letters(it)).dead_letters == 300
    for _ in range(300):
        it.log.append(PLAIN)
    with pytest.raises(DataError, match="None of the 300 records read is a message: 300 json_syntax"):
        it.run(dead_letters=letters(it))
    assert it.run(dead_letters=letters(it)).records == 0  # the snapshot holds them all


def test_N1_with_a_share_of_one_the_first_hundred_do_not_stop_the_engine() -> None:
    """The operator has chosen so; the end of the run is an error all the same."""
    it = rig([PLAIN] * 150)
    with pytest.raises(DataError, match="None of the 150 records read is a message: 150 json_syntax"):
        it.run(dead_letters=letters(it, 1.0))
    assert it.aside.end == [150]


def test_N1_a_corrected_setting_reads_the_refused_records_again() -> None:
    """No snapshot keeps an offset behind records of which none was a message."""
    it = rig([b'{"body": "win", "label": "spam"}'] * 3)
    with pytest.raises(DataError, match=r"None of the 3 records .* 3 missing_text \(first memory-0 @ 0: "):
        it.run()
    it.run(
        decoder=Decoder(MessageFields(text=("body",))),
    )
    assert it.model.learned_ == 3


@pytest.mark.parametrize("values", [[], [None] * 200])
def test_N1_no_records_and_records_without_a_value_are_no_error(values: list[None]) -> None:
    """An empty topic, or one of which all was deleted, is as it should be."""
    it = rig(values)
    assert it.run(dead_letters=letters(it)).dead_letters == len(values)


def test_N1_a_run_that_is_stopped_is_no_error() -> None:
    """It ended as asked, before it could know."""
    it = rig([PLAIN, END])
    engine = it.engine(until_end=False)
    engine.processing.tend = lambda **_: engine.stop()  # type: ignore[method-assign]
    assert engine.run().dead_letters == 1
    engine.close()


def test_N1_too_large_a_share_of_dead_letters_names_the_reasons() -> None:
    """The error was a number only."""
    it = rig([message(0, "win", "spam"), *[PLAIN] * 20, AVRO])
    aside = DeadLetters(MemorySink(it.aside), it.clock, DeadLetterLimits(), ratio_window_records=10)
    with pytest.raises(DataError, match=r"In this run: 13 json_syntax \(first memory-0 @ 1: .*\)"):
        it.run(dead_letters=aside)


def test_N2_a_misspelt_label_field_is_logged_once(said: list[str]) -> None:
    """After the first thousand messages; a stream without labels gives scores all the same."""
    it = rig([message(i, "win", "spam") for i in range(2_500)])
    it.run(decoder=Decoder(MessageFields(label="lable")), settings=EngineSettings(start="earliest"))
    (warning,) = said
    assert warning.startswith(
        "none of the first 2000 messages has a label in the field `lable`, so nothing was"
    )


@pytest.mark.parametrize(("labels", "warnings"), [([None] * 4, 1), ([None] * 4 + ["spam"], 0), ([], 0)])
def test_N2_a_short_run_without_a_label_is_logged_at_its_end(
    said: list[str], labels: list[str | None], warnings: int
) -> None:
    """One label is enough, and a run without a message has nothing to say."""
    it = rig([message(i, "win", label) for i, label in enumerate(labels)])
    it.run(settings=EngineSettings(start="earliest", batch_records_max=7))
    assert len(said) == warnings


def test_N6_a_text_that_is_cut_is_logged_once_and_counted(said: list[str]) -> None:
    """A token's and a text's limit; the score has the flag of old."""
    model = NaiveBayes(TEXT_ONLY, tokenizer=Tokenizer(message_tokens_max=3))
    it = rig([message(0, "win", "spam"), message(1, "a b c d", "ham"), message(2, "x" * 65, None)])
    it.run(classifier=model)
    first, rest = said
    assert first.startswith("scores with a flag, truncated: the first is memory-0 @ 1: Its text was cut: ")
    assert rest == "scores with a flag, further ones in 0 s: 1 truncated"
    assert it.metrics.registry.get_sample_value("streamnb_truncated_total") == 2


def test_tokens_that_are_forgotten_are_logged_once_and_counted(said: list[str]) -> None:
    """The model is at its limit from the fifth message on."""
    it = rig([message(i, f"a{i} b{i} c{i} d{i}", "spam") for i in range(30)])
    it.run(
        classifier=NaiveBayes(TEXT_ONLY, max_tokens=16),
        settings=EngineSettings(start="earliest", batch_records_max=1),
    )
    evicted = it.metrics.registry.get_sample_value("streamnb_evicted_tokens_total")
    assert evicted is not None
    assert evicted >= 30 * 4 - 16
    first, rest = said
    assert first.startswith(
        "tokens, evicted: the first is memory-0 @ 4: The counts have reached `model.bytes_max`"
    )
    assert rest.startswith("tokens, further ones in 0 s: ")


def test_a_label_that_the_guard_withholds_is_logged_once(said: list[str]) -> None:
    """The operator sees that labels come and are not learned, and where."""
    it = rig([message(i, "win", "spam") for i in range(4)])
    decoder = Decoder(MessageFields(category=("from",)))
    it.run(guard=Guard(GuardSettings(source="from", quota=2)), decoder=decoder)
    first, rest = said
    assert first.startswith(
        "scores with a flag, quota: the first is memory-0 @ 2: Its label was not learned: "
    )
    assert rest == "scores with a flag, further ones in 0 s: 1 quota"
