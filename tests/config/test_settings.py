"""A configuration loads as what it says, or is refused in one sentence that names the setting."""

from __future__ import annotations

import copy
import math
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgspec
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamnb import __version__, load
from streamnb.base.limits import DECOMPRESSED_BYTES_MAX
from streamnb.base.offsets import Account
from streamnb.base.record import Partition
from streamnb.base.snapshot import Snapshot, differences
from streamnb.config import (
    Settings,
    buffer_bytes_max,
    build_decoder,
    build_engine,
    build_model,
    check_endpoints,
    checks,
    client_settings,
    decode_settings,
    load_settings,
    model_description,
    restore_model,
    snapshot_of,
)
from streamnb.config.endpoints import ConfluentOutput, KafkaInput, KafkaOutput
from streamnb.config.engines import flush_timeout_ms
from streamnb.config.renamed import FIXED
from streamnb.config.settings import paths
from streamnb.engine import Pace, dead_letters, guard
from streamnb.engine.metrics import Metrics
from streamnb.errors import DataError, PositionError, SettingsError, SnapshotError, StreamnbError
from streamnb.evaluation import live
from streamnb.naive_bayes import (
    Binned,
    CharacterGrams,
    Forgetting,
    LearnedPrior,
    Multivariate,
    Tokenizer,
)
from streamnb.naive_bayes.estimators.naive_bayes import NaiveBayes
from streamnb.naive_bayes.event_models import Multinomial
from streamnb.naive_bayes.event_models.smoothing import Laplace
from streamnb.storage import snapshot_file, write_snapshot
from streamnb.storage.directory import SnapshotDirectory
from streamnb.transports import jsonl, topics
from streamnb.wire import message

CONFIGS = Path(__file__).parents[2] / "configs"
FULL = CONFIGS / "streamnb.toml"
SECRET = "hunter2-canary"

Tables = dict[str, Any]


def written(tmp_path: Path, text: str) -> Path:
    """A configuration file of that text."""
    path = tmp_path / "streamnb.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refusal(tmp_path: Path, text: str, *changes: str) -> SettingsError:
    """Why a file is refused."""
    with pytest.raises(SettingsError) as caught:
        load_settings(written(tmp_path, text), changes)
    return caught.value


# ---- what is shipped


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda path: path.name)
def test_what_is_shipped_builds_a_model_and_a_decoder(path: Path) -> None:
    """And all but the reference have source, sink and dead letters."""
    loaded = load_settings(path)
    model = build_model(loaded)
    model.learn_one({"text": "win money"}, "spam")
    model.learn_one({"text": "lunch"}, "ham")
    assert model.predict_one({"text": "money"}) == "spam"
    assert build_decoder(loaded).fields.text[0] == "text"
    if path != FULL:
        assert isinstance(check_endpoints(loaded)[0], KafkaInput)
        assert loaded.engine.start == "earliest"
        assert loaded.snapshots.directory.endswith(path.stem)


def shown() -> dict[str, str]:
    """Each key that the reference file shows, in use or commented out, with its line.

    An inline table's keys stand under the key it is given to.
    """
    found: dict[str, str] = {}
    table = ""
    for line in FULL.read_text(encoding="utf-8").splitlines():
        heading = re.match(r"(?:# )?\[+([a-z_.]+)\]+\s*(?:#|$)", line)
        if heading:
            table = heading[1]
            found.setdefault(table, line)
            continue
        key = re.match(r"(?:# )?([a-z_]+) = (.+)", line)
        if key:
            path = f"{table}.{key[1]}"
            found.setdefault(path, line)
            for inner in _inline(key[2], path):
                found.setdefault(inner, line)
        note = re.match(r"# (weight|unknown|smoothing): +(.+)", line)
        if note and table == "views":
            for inner in _inline(note[2], f"views.event_model.{note[1]}"):
                found.setdefault(inner, line)
    return found


def _inline(text: str, path: str) -> Iterator[str]:
    """The paths of the keys of inline tables, nested ones too."""
    stack: list[str] = []
    last = path
    for token in re.findall(r'"[^"]*"|#.*|[{}]|[a-z_]+(?= = )', text):
        if token.startswith("#"):
            return
        if token == "{":
            stack.append(last)
        elif token == "}":
            last = stack.pop()
        elif not token.startswith('"') and stack:
            last = f"{stack[-1]}.{token}"
            yield last


def test_the_reference_shows_every_setting() -> None:
    """A setting without a line in configs/streamnb.toml fails here by its name."""
    lacking = [path for path in paths() if path not in shown()]
    assert lacking == []


def test_the_reference_shows_nothing_else() -> None:
    """Every name in it is a setting, but for the label values and the names of the two clients."""
    known = {*paths(), *(path.rpartition(".")[0] for path in paths())}
    own = {
        path
        for path in shown()
        if not re.match(r"(message\.label_values|kafka|confluent)\.|prior\.p\.", path)
    }
    assert own - known == set()


def test_the_reference_gives_a_reason_for_every_setting() -> None:
    """On its line, on its table's, or in the comment that leads into the table."""
    text = FULL.read_text(encoding="utf-8")
    bare = []
    for line in text.splitlines():
        key = re.match(r"(# )?([a-z_]+) = ", line)
        if key and "#" not in line[len(key[0]) :]:
            bare.append(line.removeprefix("# ").split(" = ")[0])
    explained_above = {"name", "reader", "event_model"}  # of [[views]]
    explained_once = {"kind", "topic", "topics", "path", "in_flight_bytes_max"}
    explained_once |= {"delivery_timeout_ms"}
    explained_once |= {"client"}
    clients_own = {"bootstrap_servers", "security_protocol"}
    self_evident = {"category", "number", "flag", "true"}
    assert set(bare) <= explained_above | explained_once | clients_own | self_evident


def test_a_table_is_named_for_its_package_or_file() -> None:
    """As the reference says in its first lines, but for those that it names as exceptions."""
    text = FULL.read_text(encoding="utf-8")
    exceptions = set(re.findall(r"\[(\w+)\]", text.split("[kafka] by", 1)[1].split("named for what", 1)[0]))
    names = {path.stem for path in (CONFIGS.parent / "streamnb").rglob("*")}
    tables = set(Settings.__struct_fields__)
    assert {table for table in tables - exceptions if table not in names} == set()
    assert exceptions == {"tokens", "views", "prior", "source", "sink", "snapshots", "output"}


def test_the_defaults_shown_are_the_defaults() -> None:
    """Decoded, the reference file is what no file at all would be."""
    assert load_settings(FULL) == Settings()


def test_the_defaults_shown_in_comments_are_the_defaults() -> None:
    """A commented-out setting, taken by itself, changes nothing; endpoints are taken as a whole."""
    text = FULL.read_text(encoding="utf-8")
    tables = tomllib.loads(re.sub(r"(?m)^# (in_flight_bytes_max|delivery_timeout_ms) =", r"\1 =", text))
    assert tables.keys() == tomllib.loads(text).keys()
    endpoints: Tables = {
        "source": {"kind": "jsonl", "path": "-"},
        "sink": {"kind": "kafka", "topic": "scores"},
    }
    bare = decode_settings(endpoints, "test")
    for table, key in (
        ("sink", "in_flight_bytes_max"),
        ("sink", "delivery_timeout_ms"),
    ):
        shown_value = re.search(rf"(?m)^# {key} = (\d+)", text)
        assert shown_value is not None, key
        with_it = copy.deepcopy(endpoints)
        with_it[table][key] = int(shown_value[1])
        assert decode_settings(with_it, "test") == bare, key


# ---- what is refused


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "[engine]\npol_timeout_ms = 1",
            r"`engine\.pol_timeout_ms` is not a setting\. Did you mean `engine\.poll_timeout_ms`\?",
        ),
        ("[engin]\nstart = 1", r"`engin` is not a setting\. Did you mean `engine`\?"),
        (
            '[[views]]\nname = "w"\nreader = { kind = "words", feilds = ["a"] }',
            r"`views\[0\]\.reader\.feilds` is not a setting\. Did you mean `views\.reader\.fields`\?",
        ),
        ('[engine]\nbatch_records_max = "many"', r"`engine\.batch_records_max`: Expected `int`, got `str`"),
        ("[engine]\nbatch_records_max = 0", r"`engine`: `batch_records_max` must be from 1"),
        ("[engine]\npoll_timeout_ms = -1", r"`engine`: `poll_timeout_ms` must be from 0"),
        ("[engine]\nstart = -1", r"`engine`: `start` must be from 0"),
        ('[engine]\nstart = "yesterday"', r"`engine\.start`: Invalid enum value 'yesterday'"),
        ("[engine]\nstop_deadline_s = nan", r"`engine`: `stop_deadline_s` must be above 0"),
        ("[snapshots]\ninterval_s = -1.0", r"`snapshots`: `interval_s` must be above 0"),
        ("[snapshots]\ninterval_s = nan", r"`snapshots`: `interval_s` must be above 0"),
        ("[snapshots]\nkeep = 0", r"`snapshots`: .*`keep`"),
        ("[message]\nbytes_max = 0", r"`message`: `bytes_max` must be at least 1"),
        ("[output]\nexplanation = -1", r"`output`: `explanation` must not be below 0"),
        ('[output]\nemit = "none"', r"`output\.emit`: Invalid enum value 'none'"),
        ("[metrics]\nport = 65536", r"`metrics`: `port` must be from 0 to 65535"),
        ("[tokens]\ntoken_length_max = 0", r"`tokens`: a limit of tokens or characters must be at least 1"),
        ('[tokens]\nstop_words = ["xx"]', r"`tokens`: no stop words for 'xx'; there are lists for .*, en, "),
        ('[tokens]\nkeep_whole = ["url"]', r"`tokens\.keep_whole\[0\]`: Invalid enum value 'url'"),
        ("[tokens]\ntoken_length_min = 65", r"`tokens`: `token_length_min` must be at most"),
        ("[dead_letters]\nratio_max = 1.5", r"`dead_letters`: `ratio_max` must be from 0 to 1"),
        ('[model]\nclasses = ["a", "b"]\nclasses_max = 1', r"`model`: `classes_max` must be at least 1"),
        ('[model]\nhead = "best"', r"`model\.head`: Invalid enum value 'best'"),
        ("[message.label_values]\ntrue = 1", r"`message\.label_values\[\.\.\.\]`: Expected `str`, got `int`"),
        ('[sink]\nkind = "rabbit"', r"`sink\.kind`: Invalid value 'rabbit'"),
        ('[sink]\ntopic = "t"', r"`sink`: Object missing required field `kind`"),
        ('[sink]\nkind = "kafka"\ntopic = "t"\nin_flight_bytes_max = 0', r"`sink`: `in_flight_bytes_max`"),
        ('[prior]\nkind = "fixed"\np = { spam = -1.0 }', r"`prior`: `p` must be finite"),
        ("engine = 3", r"`engine`: Expected `object`, got `int`"),
        ("x = " + "[" * 5000, r"(is not TOML|is nested too deeply)"),
        ("x = " + "9" * 5000, r"is not TOML"),
        ("[engine\n", r"is not TOML: .*line 1"),
        ("[model]\n\nname = \n", r"is not TOML: .*line 3"),
        ("[model]\nname = 'a'\nname = 'b'", r"is not TOML: Cannot overwrite"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(tmp_path: Path, text: str, sentence: str) -> None:
    """The file, the setting, what is wrong, and what to do."""
    error = refusal(tmp_path, text)
    assert re.search(sentence, str(error)), str(error)
    assert str(tmp_path) in error.what
    assert error.hint


@pytest.mark.parametrize("alpha", ["0", "0.0", "-1.0", "inf", "nan"])
def test_a_pseudo_count_is_above_zero_and_finite(tmp_path: Path, alpha: str) -> None:
    """Zero has a name of its own, ``none``."""
    smoothing = f'{{ kind = "laplace", alpha = {alpha} }}'
    text = (
        '[[views]]\nname = "w"\nreader = { kind = "words" }\n'
        f'event_model = {{ kind = "multinomial", smoothing = {smoothing} }}'
    )
    error = refusal(tmp_path, text)
    assert re.search(
        r"`views\[0\]\.event_model\.smoothing`: `alpha` must be above 0 \(from 1e-100 to 1e100\)", error.what
    )


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    """As settings, with the exit code of settings."""
    (tmp_path / "latin.toml").write_bytes(b"name = '\xe9'")
    for name, what in (
        ("absent.toml", "No such file"),
        ("latin.toml", "is not UTF-8"),
        (".", "Is a directory"),
    ):
        with pytest.raises(StreamnbError, match=what) as caught:
            load_settings(tmp_path / name)
        assert caught.value.exit_code == 2


def test_a_missing_file_with_the_name_of_an_example_names_the_example(tmp_path: Path) -> None:
    """The example is not used in its place: it is somebody else's topics. A wheel has it too."""
    with pytest.raises(StreamnbError) as caught:
        load_settings(tmp_path / "spam.toml")
    example = caught.value.hint.removeprefix("Check the path, or copy the example ").removesuffix(".")
    assert Path(example).read_bytes() == (CONFIGS / "spam.toml").read_bytes()
    (tmp_path / "mail.toml").mkdir()
    for name in ("absent.toml", "mail.toml"):
        with pytest.raises(StreamnbError) as caught:
            load_settings(tmp_path / name)
        assert "example" not in str(caught.value)


def test_a_change_goes_over_the_file(tmp_path: Path) -> None:
    """The value is TOML, or text where it is none; tables that the file lacks are made."""
    path = written(tmp_path, '[engine]\nstart = "earliest"\n')
    loaded = load_settings(
        path,
        [
            "engine.start=latest",
            "engine.batch_records_max = 5",
            "model.classes=['a', 'b']",
            "model.name=x=y",
            "kafka.bootstrap_servers=127.0.0.1:9092",
            "output.state=true",
        ],
    )
    assert loaded.engine.start == "latest"
    assert loaded.engine.batch_records_max == 5
    assert loaded.model.classes == ("a", "b")
    assert loaded.model.name == "x=y"
    assert loaded.kafka == {"bootstrap_servers": "127.0.0.1:9092"}
    assert loaded.output.state is True


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("engine.start", "does not set a key to a value"),
        ("=3", "does not set a key to a value"),
        ("engine..start=3", "does not set a key to a value"),
        ("engine.start.deep=3", "`start` is not a table"),
        ("engine.strat=latest", r"`engine\.strat` is not a setting\. Did you mean `engine\.start`\?"),
        ("engine.batch_records_max=many", "Expected `int`, got `str`"),
        ("engine=3", "Expected `object`, got `int`"),
        ("engine.start=" + "[" * 5000, "Invalid enum value"),
    ],
)
def test_a_wrong_change_is_refused(tmp_path: Path, change: str, sentence: str) -> None:
    """With what was asked and what was meant, perhaps."""
    assert re.search(sentence, str(refusal(tmp_path, '[engine]\nstart = "earliest"\n', change)))


# ---- settings of earlier versions


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[labels]\ntrue = "spam"', "`[labels]` is now `[message.label_values]`."),
        ('[tokens]\nwhole = ["urls"]', "`tokens.whole` is now `tokens.keep_whole`."),
        ("[source.kafka]\nlinger_ms = 1", "`source.kafka` is now `source.client`."),
        ("[sink.confluent]\nlinger.ms = 1", "`sink.confluent` is now `sink.client`."),
        ("[dead_letters.sink]\nkafka = {}", "`dead_letters.sink.kafka` is now `dead_letters.sink.client`."),
        (
            '[[views]]\nname = "w"\nreader.kind = "words"\n[[views]]\nname = "e"\nreader.kind = "edges"',
            '`views[1].reader.kind = "edges"` is now `views[1].reader.kind = "ends"`.',
        ),
    ],
)
def test_a_setting_that_was_renamed_is_refused_with_its_new_name(
    tmp_path: Path, text: str, sentence: str
) -> None:
    """From a file and from --set, even where the rest of the file is wrong as well."""
    error = refusal(tmp_path, text)
    assert error.what == f"{tmp_path / 'streamnb.toml'}: {sentence}"
    assert sentence in str(refusal(tmp_path, text + "\n[engin]"))


@pytest.mark.parametrize(
    ("numbers", "what"),
    [
        ("[]", "`partitions` names no partition"),
        ("[0, -1]", "`partitions` has -1, which is no partition's number"),
        ("[1, 1]", "`partitions` names partition 1 more than once"),
        ('["0"]', "Expected `int`, got `str`"),
        ("[true]", "Expected `int`, got `bool`"),
        ("0", "Expected `array | null`, got `int`"),
    ],
)
@pytest.mark.parametrize("kind", ["kafka", "confluent"])
def test_partitions_that_no_topic_can_have_are_refused(
    tmp_path: Path, kind: str, numbers: str, what: str
) -> None:
    """Before anything is asked of a broker, with the place in the file."""
    text = f'[source]\nkind = "{kind}"\ntopics = ["mail"]\npartitions = {numbers}\n'
    error = refusal(tmp_path, text)
    assert what in error.what
    assert "`source" in error.what
    path = tmp_path / "streamnb.toml"
    path.write_text(text)
    assert load_settings(path, ["source.partitions=[2, 0]"]).source.partitions == (2, 0)  # type: ignore[union-attr]


FIXED_VALUES = {
    "message.key_bytes_max": message.KEY_BYTES_MAX,
    "message.headers_max": message.HEADERS_MAX,
    "dead_letters.ratio_window_records": dead_letters.RATIO_WINDOW_RECORDS,
    "engine.poll_stalled_s": Pace().poll_stalled_s,
    "engine.transaction_interval_ms": Pace().transaction_interval_ms,
    "snapshots.interval_records": Pace().snapshot_interval_records,
    "snapshots.failures_max": Pace().snapshot_failures_max,
    "sink.in_flight_max": topics.IN_FLIGHT_MAX,
    "dead_letters.sink.in_flight_max": topics.IN_FLIGHT_MAX,
    "source.decompressed_bytes_max": DECOMPRESSED_BYTES_MAX,
    "source.line_bytes_max": jsonl.LINE_BYTES_MAX,
    "guard.window_records": guard.WINDOW_RECORDS,
    "evaluation.window_messages": live.WINDOW_MESSAGES,
    "tokens.message_tokens_max": Tokenizer().message_tokens_max,
    "views.reader.characters_max": CharacterGrams().characters_max,
    "views.event_model.messages_per_coordinate": Multivariate().messages_per_coordinate,
    "views.event_model.warm_up": Binned().warm_up,
    "prior.smoothing": LearnedPrior().smoothing,
    "forgetting.time_skew_max_s": Forgetting().time_skew_max_s,
}


def test_F10_the_bytes_that_are_held_follow_from_the_settings(tmp_path: Path) -> None:
    """Of a file only a poll is held; limits of the clients and sinks may be set."""
    path = tmp_path / "streamnb.toml"
    path.write_text('[source]\nkind = "jsonl"\npath = "-"\n[sink]\nkind = "jsonl"\npath = "-"\n')
    assert set(buffer_bytes_max(load_settings(path)).values()) == {8 << 20, 0}

    path.write_text(
        '[source]\nkind = "confluent"\ntopics = ["a"]\nclient = { queued.max.messages.kbytes = 1024 }\n'
        '[confluent]\nfetch.max.bytes = 3145728\n[sink]\nkind = "kafka"\ntopic = "b"\n'
        'in_flight_bytes_max = 1000\n[dead_letters.sink]\nkind = "confluent"\ntopic = "c"\n'
    )
    assert buffer_bytes_max(load_settings(path)) == {
        "poll": 8 << 20,
        "fetched": 4 << 20,
        "decompressed": 0,
        "scores": 1000,
        "dead letters": 8 << 20,
    }
    large = path.read_text().replace("fetch.max.bytes = 3145728", "message.max.bytes = 20971520")
    path.write_text(large)
    assert buffer_bytes_max(load_settings(path))["fetched"] == 21 << 20


def test_a_fixed_value_is_what_the_code_does() -> None:
    """Two settings are fixed at what is no number: the time to flush, and a detector's parameters."""
    assert {path: FIXED[path] for path in FIXED_VALUES} == FIXED_VALUES
    assert FIXED.keys() - FIXED_VALUES.keys() == {"engine.flush_timeout_ms", "drift.parameters"}
    assert str(Pace().flush_timeout_ms) in str(FIXED["engine.flush_timeout_ms"])


@pytest.mark.parametrize("path", FIXED)
def test_a_setting_that_is_fixed_now_is_refused_with_its_value(path: str) -> None:
    """Even with that value: whoever writes it believes that it can be changed."""
    *way, last = path.split(".")
    tables: Tables = {last: FIXED_VALUES.get(path, 1)}
    for key in reversed(way):
        tables = {key: [{}, tables] if key == "views" else tables}
    written_as = path.replace("views", "views[1]")
    with pytest.raises(SettingsError) as caught:
        decode_settings(tables, "test")
    assert caught.value.what == f"test: `{written_as}` can no longer be set; it is always {FIXED[path]}."
    assert path not in paths()


def test_a_snapshot_waits_as_long_as_a_delivery_may_take() -> None:
    """Or a patient `delivery_timeout_ms` would be cut short by the flush."""
    slow = decode_settings(
        {"sink": {"kind": "kafka", "topic": "t", "delivery_timeout_ms": 600_000}}, "test"
    ).sink
    lines = decode_settings({"sink": {"kind": "jsonl", "path": "-"}}, "test").sink
    assert slow is not None
    assert lines is not None
    assert flush_timeout_ms(lines, slow) == 600_000
    assert flush_timeout_ms(lines, lines) == Pace().flush_timeout_ms


def test_a_former_name_in_set_is_refused_like_one_in_the_file(tmp_path: Path) -> None:
    """The file itself has none."""
    assert "is now `[message.label_values]`" in str(refusal(tmp_path, "", "labels.true=spam"))


# ---- secrets


def test_a_secret_is_looked_up_and_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in what the client is given, and in no repr."""
    monkeypatch.setenv("STREAMNB_TEST_PASSWORD", SECRET)
    path = written(tmp_path, '[kafka]\nsasl_plain_password = { env = "STREAMNB_TEST_PASSWORD" }\n')
    loaded = load_settings(path)
    assert client_settings(loaded)["sasl_plain_password"] == SECRET
    assert SECRET not in repr(loaded) + str(loaded) + str(model_description(loaded))


def test_a_secret_in_the_file_is_refused_without_being_repeated(tmp_path: Path) -> None:
    """Wherever client settings may stand, and by --set as well."""
    output = f'kind = "kafka"\ntopic = "t"\nclient = {{ ssl_password = "{SECRET}" }}'
    source = output.replace('topic = "t"', 'topics = ["t"]')
    confluent = f'kind = "confluent"\ntopic = "t"\nclient = {{ "ssl.key.password" = "{SECRET}" }}'
    for text in (
        f'[kafka]\nsasl_plain_password = "{SECRET}"',
        f'[kafka]\nclient_secret = "{SECRET}"',
        f"[source]\n{source}",
        f"[sink]\n{output}",
        f"[dead_letters.sink]\n{output}",
        f'[confluent]\nsasl.password = "{SECRET}"',
        f'[confluent]\n"sasl.password" = "{SECRET}"',
        f'[confluent]\nsasl.password = {{ file = "{SECRET}" }}',
        f'[confluent]\nssl.key.pem = "{SECRET}"',
        f"[sink]\n{confluent}",
        f'[kafka]\nsasl_plain_password = "{SECRET}',
        f'[kafka]\nsasl_plain_password = {{ env = "{SECRET}" }}\n[kafka]\n',
    ):
        error = refusal(tmp_path, text)
        assert SECRET not in str(error)
        assert SECRET not in repr(error)
    for change in (f"kafka.sasl_plain_password={SECRET}", f"kafka.sasl_plain_password.x={SECRET}"):
        error = refusal(tmp_path, '[kafka]\nsasl_plain_password = "x"', change)
        assert SECRET not in str(error) + repr(error)


def test_a_secret_that_cannot_be_found_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable and the setting; a table of another form is refused."""
    monkeypatch.delenv("STREAMNB_TEST_PASSWORD", raising=False)
    lacking = decode_settings({"kafka": {"sasl_plain_password": {"env": "STREAMNB_TEST_PASSWORD"}}}, "test")
    with pytest.raises(SettingsError, match=r"`sasl_plain_password` asks for .* STREAMNB_TEST_PASSWORD"):
        client_settings(lacking)
    for table in ({"file": "/run/secret"}, {"env": 3}, {"env": "HOME", "or": SECRET}):
        with pytest.raises(SettingsError, match=r"`ssl_password` is a table") as caught:
            client_settings(decode_settings({"kafka": {"ssl_password": table}}, "test"))
        assert SECRET not in str(caught.value)


def test_an_endpoints_client_settings_go_over_the_common_ones() -> None:
    """Key by key."""
    endpoint = {"kind": "kafka", "topics": ["a"], "client": {"b": 3}}
    loaded = decode_settings({"kafka": {"a": 1, "b": 2}, "source": endpoint}, "test")
    assert isinstance(loaded.source, KafkaInput)
    assert client_settings(loaded, loaded.source) == {"a": 1, "b": 3}


def test_the_scores_may_go_to_another_cluster() -> None:
    """What the endpoint does not name, such as the password, is that of all."""
    output = {"kind": "kafka", "topic": "t"}
    tables = {
        "kafka": {"bootstrap_servers": "a:1", "ssl_cafile": "ca.pem"},
        "sink": {**output, "client": {"bootstrap_servers": "b:1"}},
        "dead_letters": {"sink": output},
    }
    loaded = decode_settings(tables, "test")
    sink, aside = loaded.sink, loaded.dead_letters.sink
    assert isinstance(sink, KafkaOutput)
    assert isinstance(aside, KafkaOutput)
    assert client_settings(loaded, sink) == {"bootstrap_servers": "b:1", "ssl_cafile": "ca.pem"}
    assert client_settings(loaded, aside) == client_settings(loaded) == tables["kafka"]


def test_librdkafkas_names_may_stand_with_or_without_quotes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dot makes a table in TOML and in --set; the client is given one name, its endpoint's first."""
    monkeypatch.setenv("STREAMNB_TEST_PASSWORD", SECRET)
    path = written(
        tmp_path,
        """
        [confluent]
        bootstrap.servers = "a:1"
        "client.id" = "common"
        sasl.password = { env = "STREAMNB_TEST_PASSWORD" }
        [sink]
        kind = "confluent"
        topic = "t"
        client = { client.id = "own", linger.ms = 5 }
        """,
    )
    loaded = load_settings(path, ["confluent.socket.keepalive.enable=true"])
    assert isinstance(loaded.sink, ConfluentOutput)
    assert client_settings(loaded, loaded.sink) == {
        "bootstrap.servers": "a:1",
        "client.id": "own",
        "sasl.password": SECRET,
        "linger.ms": 5,
        "socket.keepalive.enable": True,
    }
    assert client_settings(loaded) == {}
    assert SECRET not in repr(loaded)


def test_without_the_optional_client_the_error_says_what_to_install(tmp_path: Path) -> None:
    """One sentence and the command, not a traceback; everything else goes on working."""
    path = written(
        tmp_path, '[source]\nkind = "confluent"\ntopics = ["t"]\n[confluent]\nbootstrap.servers = "a:1"\n'
    )
    without = "import sys; sys.modules['confluent_kafka'] = None; from streamnb.cli import main; "
    script = f"{without}sys.argv[1:] = ['check', {str(path)!r}]; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert "needs confluent-kafka" in said
    assert "pip install 'streamnb[confluent]'" in said
    assert "Traceback" not in said


# ---- any file at all

ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.just(10**400),
        st.floats(),
        st.text(max_size=5),
        st.sampled_from(["words", "kafka", "jsonl", "learned", "laplace", "multinomial", "-", "text"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["kind", "name", "reader", "p", "alpha", "env", "x"]), inner, max_size=3
        ),
    ),
    max_leaves=6,
)
PLACES = [*paths(), "x", "engine.x"]
EVERY_TABLE: Tables = tomllib.loads(FULL.read_text(encoding="utf-8"))


def put(tables: Tables, path: str, value: object) -> None:
    """Set the value at a path, in the first table of a list, if the way there are tables."""
    table: object = tables
    *way, last = path.split(".")
    for key in way:
        table = table.setdefault(key, {}) if isinstance(table, dict) else None
        table = table[0] if isinstance(table, list) and table else table
    if isinstance(table, dict):
        cast("Tables", table)[last] = value


@pytest.mark.parametrize("path", paths())
def test_F15_no_setting_is_infinite_or_not_a_number(path: str) -> None:
    """Neither a time, a limit nor a smoothing; integers are refused if a snapshot could not hold them."""
    for value in (math.inf, -math.inf, math.nan, 10**20, -(10**20)):
        tables = copy.deepcopy(EVERY_TABLE)
        put(tables, path, value)
        if isinstance(value, float):
            with pytest.raises(SettingsError):
                decode_settings(tables, "test")
            continue
        with suppress(SettingsError):
            assert orjson.dumps(msgspec.to_builtins(decode_settings(tables, "test")))


@pytest.mark.parametrize("table", ["kafka", "confluent"])
def test_F15_a_number_of_a_client_is_checked_too(table: str) -> None:
    """The error names the setting."""
    with pytest.raises(SettingsError, match=rf"test: `{table}\.linger_ms` is inf; a number must be finite"):
        decode_settings({table: {"linger_ms": math.inf}}, "test")


@pytest.mark.parametrize(
    "line",
    [
        "engine.poll_timeout_ms=60000",
        "engine.poll_timeout_ms=30001",
        "engine.poll_timeout_ms=20000",  # `stop_deadline_s` is 20
        "engine.stop_deadline_s=1e12",
        "engine.stop_deadline_s=0.2",
        "engine.batch_records_max=1000001",
        "engine.start=1000000000000001",
        "sink.delivery_timeout_ms=86400001",
    ],
)
def test_F15_times_that_a_watchdog_a_timer_or_a_client_cannot_wait_are_refused(line: str) -> None:
    """With a poll as long as the watchdog's limit, the watchdog ended an idle engine."""
    with pytest.raises(SettingsError, match=line.partition("=")[0].partition(".")[2]):
        load_settings(FULL, ["sink.kind=kafka", "sink.topic=scores", line] if "sink" in line else [line])
    assert load_settings(FULL).engine.poll_timeout_ms * 2 <= Pace().poll_stalled_s * 1000


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_a_changed_file_loads_or_is_refused(data: st.DataObject) -> None:
    """Whatever stands at a key: one sentence, never another exception; what loads can be shown."""
    tables = copy.deepcopy(EVERY_TABLE)
    for path in data.draw(st.lists(st.sampled_from(PLACES), min_size=1, max_size=3)):
        put(tables, path, data.draw(ANYTHING))
    refused = None
    try:
        loaded = decode_settings(tables, "test")
        assert repr(loaded)
        build_model(loaded)
        build_decoder(loaded)
        check_endpoints(loaded)
    except SettingsError as error:
        refused = error
    assert refused is None or (refused.what.endswith(".") and "\n" not in str(refused))


# ---- from settings to parts

LINES: Tables = {
    "source": {"kind": "jsonl", "path": "in.jsonl"},
    "sink": {"kind": "jsonl", "path": "out.jsonl"},
    "dead_letters": {"sink": {"kind": "jsonl", "path": "aside.jsonl"}},
}


@pytest.mark.parametrize(
    ("table", "endpoint", "sentence"),
    [
        ("source", None, r"`\[source\]` is not set"),
        ("sink", None, r"`\[sink\]` is not set"),
        ("sink", {"kind": "jsonl", "path": "in.jsonl"}, r"`in\.jsonl` is used for more than one of"),
        ("sink", {"kind": "jsonl", "path": "aside.jsonl"}, r"`aside\.jsonl` is used for more than one of"),
        ("dead_letters", {}, r"`\[dead_letters\.sink\]` is not set"),
        (
            "dead_letters",
            {"sink": {"kind": "jsonl", "path": "in.jsonl"}},
            r"`in\.jsonl` is used for more than one of",
        ),
    ],
)
def test_what_is_written_is_never_read_again(table: str, endpoint: object, sentence: str) -> None:
    """Source, sink and dead letters must be set, and each by itself."""
    changed = {name: value for name, value in LINES.items() if name != table}
    if endpoint is not None:
        changed[table] = endpoint
    with pytest.raises(SettingsError, match=sentence):
        check_endpoints(decode_settings(changed, "test"))


@pytest.mark.parametrize("table", ["sink", "dead_letters"])
@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("how", ["./in.jsonl", "symlink", "hard link", "folder"])
def test_F17_another_name_of_the_source_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, *, exists: bool, how: str
) -> None:
    """Scores would be appended to the input; the names are compared by device and inode, or resolved."""
    monkeypatch.chdir(tmp_path)
    path = {"./in.jsonl": "./in.jsonl", "folder": "folder/in.jsonl"}.get(how, "other.jsonl")
    Path("folder").symlink_to(tmp_path)
    if exists or how == "hard link":
        Path("in.jsonl").touch()
    if how == "symlink":
        Path("other.jsonl").symlink_to("in.jsonl")
    elif how == "hard link":
        Path("other.jsonl").hardlink_to("in.jsonl")
    endpoint = {"kind": "jsonl", "path": path}
    changed = {**LINES, table: endpoint if table == "sink" else {"sink": endpoint}}
    with pytest.raises(SettingsError, match=f"`{path}` is used for more than one of"):
        check_endpoints(decode_settings(changed, "test"))


def test_F17_scores_and_dead_letters_are_not_mixed_in_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under two names neither; but both may go to a device such as /dev/null."""
    monkeypatch.chdir(tmp_path)
    aside = {"dead_letters": {"sink": {"kind": "jsonl", "path": "./out.jsonl"}}}
    with pytest.raises(SettingsError, match="is used for more than one of"):
        check_endpoints(decode_settings({**LINES, **aside}, "test"))
    Path("null").symlink_to(os.devnull)
    nowhere: Tables = {
        "sink": {"kind": "jsonl", "path": os.devnull},
        "dead_letters": {"sink": {"kind": "jsonl", "path": "null"}},
    }
    check_endpoints(decode_settings({**LINES, **nowhere}, "test"))


def test_F17_a_replaced_longer_input_is_not_resumed_in_the_middle(tmp_path: Path) -> None:
    """A file that was appended to is; of another one the old position means nothing."""
    tables: Tables = copy.deepcopy(LINES)
    for endpoint in (tables["source"], tables["sink"], tables["dead_letters"]["sink"]):
        endpoint["path"] = str(tmp_path / endpoint["path"])
    tables["snapshots"] = {"directory": str(tmp_path / "snapshots")}
    tables["engine"] = {"start": "earliest"}
    source = tmp_path / "in.jsonl"

    def records() -> int:
        engine = build_engine(decode_settings(tables, "test"), metrics=Metrics(), until_end=True)
        try:
            return engine.run().records
        finally:
            engine.close()

    source.write_bytes(b'{"text": "one", "label": "a"}\n')
    assert records() == 1
    source.write_bytes(b'{"text": "one", "label": "a"}\n{"text": "two", "label": "b"}\n')
    assert records() == 1
    source.write_bytes(b'{"text": "three", "label": "b"}\n' * 5)
    with pytest.raises(PositionError, match="hash of the first line is"):
        records()


def test_topics_that_feed_themselves_are_refused() -> None:
    """Any of several topics."""
    topics = {"source": {"kind": "kafka", "topics": ["a", "b"]}, "sink": {"kind": "kafka", "topic": "b"}}
    with pytest.raises(SettingsError, match="`b` is used for more than one of"):
        check_endpoints(decode_settings({**LINES, **topics}, "test"))


def test_standard_input_and_output_are_two_things() -> None:
    """Both are written ``-``."""
    pipes = {"source": {"kind": "jsonl", "path": "-"}, "sink": {"kind": "jsonl", "path": "-"}}
    assert (
        check_endpoints(decode_settings({**LINES, **pipes}, "test"))[0]
        == decode_settings(pipes, "test").source
    )


@pytest.mark.parametrize(
    ("view", "sentence"),
    [
        (
            {"reader": {"kind": "words", "fields": ["body"]}},
            r"field `body`, which `message\.text` does not list",
        ),
        (
            {"reader": {"kind": "number", "field": "text"}},
            r"field `text`, which `message\.number` does not list",
        ),
        (
            {"reader": {"kind": "category", "field": "x"}},
            r"field `x`, which `message\.category` does not list",
        ),
        ({"reader": {"kind": "terms", "field": "colour"}}, r"View `v` has the reader `terms`"),
    ],
)
def test_a_view_looks_only_at_fields_that_are_read(view: Tables, sentence: str) -> None:
    """Of the type it needs: otherwise it would be empty for ever, or stop the stream."""
    tables = {"views": [{"name": "v", **view}], "message": {"category": ["colour"]}}
    with pytest.raises(SettingsError, match=sentence):
        build_decoder(decode_settings(tables, "test"))


def test_a_category_may_be_a_flag() -> None:
    """True and false are two values."""
    tables = {
        "views": [{"name": "v", "reader": {"kind": "category", "field": "new"}}],
        "message": {"flag": ["new"]},
    }
    assert build_decoder(decode_settings(tables, "test")).fields.flag == ("new",)


@pytest.mark.parametrize(
    ("tables", "sentence"),
    [
        ({"views": []}, "from 1 to 255 views"),
        ({"views": [{"name": "w", "reader": {"kind": "words"}}] * 2}, "views have the same name: 'w'"),
        (
            {"views": [{"name": "w", "reader": {"kind": "words", "fields": []}}]},
            "name at least one text field",
        ),
        ({"views": [{"name": "s", "reader": {"kind": "strings", "fields": []}}]}, "at least one text field"),
        ({"prior": {"kind": "uniform"}}, "`prior` needs head="),
        (
            {
                "views": [
                    {
                        "name": "w",
                        "reader": {"kind": "words"},
                        "event_model": {"kind": "multinomial", "smoothing": {"kind": "none"}},
                    }
                ]
            },
            r"needs Laplace\(alpha\)",
        ),
    ],
)
def test_settings_that_contradict_each_other_build_no_model(tables: Tables, sentence: str) -> None:
    """One sentence, no traceback."""
    with pytest.raises(SettingsError, match=sentence):
        build_model(decode_settings(tables, "test"))


def test_an_engine_that_cannot_be_built_holds_nothing(tmp_path: Path) -> None:
    """Neither the lock of the snapshot directory nor a file."""
    tables: Tables = copy.deepcopy(LINES)
    tables["sink"]["path"] = str(tmp_path / "absent" / "out.jsonl")
    tables["snapshots"] = {"directory": str(tmp_path / "snapshots")}
    with pytest.raises(StreamnbError, match="absent"):
        build_engine(decode_settings(tables, "test"), metrics=Metrics())
    SnapshotDirectory(tmp_path / "snapshots").close()


def test_F16_a_check_changes_nothing(tmp_path: Path) -> None:
    """It says what a start would find, makes no directory and removes no file."""
    tables: Tables = copy.deepcopy(LINES)
    tables["snapshots"] = {"directory": str(tmp_path / "snapshots")}
    tables["engine"] = {"start": "earliest"}
    attempts = dict(checks(decode_settings(tables, "test")))
    assert "is empty: the engine starts at" in attempts["snapshots"]()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "snapshots").mkdir()
    (tmp_path / "snapshots" / ".snapshot-0000000001.snb.tmp").touch()
    assert "is empty: the engine starts at" in attempts["snapshots"]()
    assert [path.name for path in (tmp_path / "snapshots").iterdir()] == [".snapshot-0000000001.snb.tmp"]


def test_a_check_names_the_partitions_that_the_snapshot_has_and_the_settings_do_not(tmp_path: Path) -> None:
    """The engine keeps the offsets of the one, and begins at `engine.start` in the other."""
    tables: Tables = copy.deepcopy(LINES) | {"snapshots": {"directory": str(tmp_path)}}
    tables |= {"engine": {"start": "latest"}, "source": {"kind": "kafka", "topics": ["a", "b"]}}
    chosen = decode_settings(tables, "test")
    snapshot = snapshot_of(chosen, build_model(chosen))
    snapshot.accounts = {Partition(topic, n): Account(0, 7, scored=7) for topic in "ab" for n in range(2)}
    store = SnapshotDirectory(tmp_path)
    store.write(snapshot)
    store.close()
    resumes = f"the engine resumes from snapshot 1 in {tmp_path}"
    for numbers, more in (
        ([0, 1], ""),
        ([0], "; it keeps, but does not read: a-1 @ 7, b-1 @ 7"),
        ([0, 1, 3], "; it begins at latest in a-3, b-3"),
        ([0, 2], "; it keeps, but does not read: a-1 @ 7, b-1 @ 7; it begins at latest in a-2, b-2"),
    ):
        tables["source"]["partitions"] = numbers
        assert dict(checks(decode_settings(tables, "test")))["snapshots"]() == resumes + more


def test_an_engine_is_built_from_settings_and_runs(tmp_path: Path) -> None:
    """Lines in, lines out, a snapshot that gives the model back."""
    tables: Tables = copy.deepcopy(LINES)
    for endpoint in (tables["source"], tables["sink"], tables["dead_letters"]["sink"]):
        endpoint["path"] = str(tmp_path / endpoint["path"])
    tables["snapshots"] = {"directory": str(tmp_path / "snapshots")}
    tables["engine"] = {"start": "earliest"}
    (tmp_path / "in.jsonl").write_bytes(
        b'{"text": "win", "label": "spam"}\n{\n{"text": "lunch", "label": "ham"}\n'
    )
    engine = build_engine(decode_settings(tables, "test"), metrics=Metrics(), until_end=True)
    try:
        summary = engine.run()
        newest = engine.snapshots.writer.store.newest()
    finally:
        engine.close()
    assert (summary.scored, summary.dead_letters) == (2, 1)
    assert len((tmp_path / "out.jsonl").read_bytes().splitlines()) == 2
    assert newest is not None
    loaded, model = restore_model(newest)
    assert model.digest() == summary.digest
    assert differences(newest.settings, model_description(loaded)) == []


def checked_source(tmp_path: Path, lines: bytes, **message: object) -> str:
    """Return what `check` says of a file of these lines under these settings of the message."""
    path = tmp_path / "in.jsonl"
    path.write_bytes(lines)
    tables = copy.deepcopy(LINES) | {"source": {"kind": "jsonl", "path": str(path)}, "message": message}
    return dict(checks(decode_settings(tables, "test")))["source"]()


def test_N1_a_check_names_what_the_records_are(tmp_path: Path) -> None:
    """The configuration is valid; only the records show that it does not fit them."""
    lines = b"""{"text": "a", "mood": "good", "label": "billing"}
{"text": "b", "label": "technical"}
win money
{"text": "c", "mood": "bad", "label": "billing"}
{"body": "d"}
"""
    said = checked_source(tmp_path, lines, category=["mood"]).split("; ")
    assert said[:2] == [f"{tmp_path}/in.jsonl can be read", "3 of the first 5 records are messages"]
    assert said[2].startswith(
        f"1 json_syntax (first {tmp_path}/in.jsonl:3: The record is not one JSON document: "
    )
    assert said[3:] == [
        f"1 missing_text (first {tmp_path}/in.jsonl:5: The record has none of the fields ['text'].)",
        "1 lack `mood`",
        "3 have a label: billing (2), technical (1)",
    ]


def test_N1_a_check_fails_if_no_record_is_a_message(tmp_path: Path) -> None:
    """It had said ready."""
    with pytest.raises(DataError, match="None of the first 20 records is a message: 20 json_syntax "):
        checked_source(tmp_path, b"win money\n" * 100)
    assert checked_source(tmp_path, b"").endswith("; no records yet")


def test_N2_a_check_names_a_label_that_no_record_has(tmp_path: Path) -> None:
    """A misspelt field is not an error: a stream may have no labels yet."""
    line = b'{"text": "a", "label": "billing"}\n'
    assert checked_source(tmp_path, line, label="lable").endswith("none has a label in the field `lable`")


SLOW: list[tuple[Tables, list[str]]] = [
    ({}, []),
    ({"forgetting": {"half_life_messages": 100.0}}, []),
    ({"output": {"explanation": 3}}, ["`output.explanation`"]),
    ({"model": {"head": "product"}, "prior": {"kind": "fixed", "p": {"spam": 0.5, "ham": 0.5}}}, ["`prior`"]),
    (
        {
            "model": {"head": "product"},
            "views": [
                {
                    "name": "others",
                    "reader": {"kind": "words"},
                    "event_model": {"kind": "multinomial", "complement": True},
                }
            ],
        },
        ["view `others`"],
    ),
    ({"guard": {"learn_below": 0.9}}, ["`guard.learn_below`"]),
]


@pytest.mark.parametrize(("changes", "slow"), SLOW)
def test_N4_what_makes_a_model_slow_is_named_by_check_log_and_metric(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, changes: Tables, slow: list[str]
) -> None:
    """Such a setting costs a factor of hundreds, and nothing else shows which one it is."""
    tables: Tables = copy.deepcopy(LINES) | changes
    for endpoint in (tables["source"], tables["sink"], tables["dead_letters"]["sink"]):
        endpoint["path"] = str(tmp_path / endpoint["path"])
    tables["snapshots"] = {"directory": str(tmp_path / "snapshots")}
    (tmp_path / "in.jsonl").touch()
    settings, metrics = decode_settings(tables, "test"), Metrics()
    build_engine(settings, metrics=metrics).close()
    names = ", ".join(slow)
    checked = dict(checks(settings))["model"]()
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    shown = [
        sample.labels["because"]
        for metric in metrics.registry.collect()
        for sample in metric.samples
        if sample.name == "streamnb_slow"
    ]
    assert checked.partition("; SLOW because of ")[2] == names
    assert [line.partition(" because of ")[2] for line in warnings] == ([names] if slow else [])
    assert shown == slow


# ---- a model from its snapshot alone


def learned(tables: Tables) -> tuple[Settings, NaiveBayes, Snapshot]:
    """Settings, a model that has learned a little, and its snapshot after a trip through a file's bytes."""
    loaded = decode_settings(tables, "test")
    model = build_model(loaded)
    for text, label in (("win money", "spam"), ("lunch at noon", "ham"), ("win a prize", "spam")):
        model.learn_one({"text": text}, label)
    data = b"".join(snapshot_file.encode(snapshot_of(loaded, model)))
    return loaded, model, snapshot_file.decode(data)


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda path: path.name)
def test_a_snapshot_gives_its_model_back(path: Path) -> None:
    """Without the configuration file: equal digest, equal scores, equal settings of the model."""
    loaded, model, snapshot = learned(tomllib.loads(path.read_text(encoding="utf-8")))
    again, restored = restore_model(snapshot)
    assert restored.digest() == model.digest() == snapshot.digest
    x = {"text": "win lunch"}
    assert restored.predict_proba_one(x) == model.predict_proba_one(x)
    assert differences(snapshot.settings, model_description(loaded)) == []
    assert differences(snapshot.settings, model_description(again)) == []


def test_a_snapshot_has_no_setting_that_a_file_must_not_have() -> None:
    """What Python alone can set is not in it, unless Python has set it: then its reader names it."""
    _, _, snapshot = learned({"views": [{"name": "c", "reader": {"kind": "characters"}}]})
    tables = cast("Tables", snapshot.settings)
    assert "characters_max" not in tables["views"][0]["reader"]
    assert "message_tokens_max" not in tables["tokens"]
    own = Settings(tokens=Tokenizer(message_tokens_max=9))
    with pytest.raises(
        SettingsError, match=r"`tokens\.message_tokens_max` can no longer be set; it is always 65536"
    ):
        restore_model(snapshot_of(own, build_model(own)))


def test_a_snapshot_of_another_unicode_table_is_refused(tmp_path: Path) -> None:
    """By every reader; the error names both tables, and the hint the version that has the other one."""
    _, _, snapshot = learned({})
    snapshot.statistics = msgspec.json.decode(msgspec.json.encode(snapshot.statistics))
    cast("Tables", snapshot.statistics["model"])["unicode"]["hash"] = "00"
    found = r' counted tokens by the Unicode table {"hash":"00","version":"16\.0\.0"}; this streamnb has'
    with pytest.raises(SnapshotError, match=f"Snapshot 0{found}") as caught:
        restore_model(snapshot)
    assert f"the version of streamnb that wrote it ({__version__})" in caught.value.hint
    write_snapshot(tmp_path / "model.snb", snapshot)
    with pytest.raises(SnapshotError, match=rf"model\.snb{found}"):
        load(tmp_path / "model.snb")


def test_a_snapshot_of_settings_from_the_future_is_refused() -> None:
    """A setting this version does not know."""
    _, _, snapshot = learned({})
    snapshot.settings["telepathy"] = True
    with pytest.raises(SettingsError, match=r"the snapshot: `telepathy` is not a setting"):
        restore_model(snapshot)


def test_the_textbook_is_the_lectures_arithmetic() -> None:
    """Counts, add-one, prior times likelihood, unknown words smoothed."""
    loaded = load_settings(CONFIGS / "textbook.toml")
    (view,) = loaded.views
    assert (loaded.model.head, loaded.tokens.rule, loaded.prior) == ("product", "words", None)
    assert view.event_model == Multinomial(Laplace(1.0), weight="counts", unknown="smooth")


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ("engine.batch=3", "Did you mean `engine.batch_records_max`?"),
        ("engine.poll=3", "Did you mean `engine.poll_timeout_ms`?"),
        ("enigne.start=3", "Did you mean `engine`?"),
        ("tokens.rule=word", 'It may be "unicode" or "words".'),
        ("engine.start=erliest", 'It may be "earliest", "latest" or an integer.'),
        ("source={kind='kafak'}", 'It may be "kafka", "confluent" or "jsonl".'),
        ("message.bytes_max=word", "It may be an integer."),
        ("message.text=[3]", "Correct that value."),
        ("metrics.port=70000", "Correct that value."),
        (".".join("a" * 3000) + "=1", "Flatten it; no setting is nested this deeply."),
    ],
)
def test_a_hint_names_the_setting_that_was_meant_or_the_values_that_are_allowed(
    change: str, hint: str, tmp_path: Path
) -> None:
    """It named `engine.start` for `engine.batch`, and a file that an installed streamnb does not have."""
    with pytest.raises(SettingsError) as caught:
        load_settings(written(tmp_path, ""), [change])
    assert caught.value.hint == hint


def test_a_change_may_have_keys_in_quotes_as_a_file_may(tmp_path: Path) -> None:
    """They were read as keys with quotes in them."""
    changes = ['tokens."rule"="words"', 'confluent."sasl.mechanism"="PLAIN"', "kafka.'client_id'='x=y'"]
    settings = load_settings(written(tmp_path, ""), changes)
    assert settings.tokens.rule == "words"
    assert settings.confluent == {"sasl.mechanism": "PLAIN"}
    assert settings.kafka == {"client_id": "x=y"}


def test_a_view_of_fields_that_no_message_has_is_told_those_that_it_may_read(tmp_path: Path) -> None:
    """A reader of text reads `text` by default; with other text fields it was told to add one more."""
    with pytest.raises(SettingsError, match="uses the field `text`") as caught:
        build_decoder(load_settings(written(tmp_path, 'message.text = ["subject", "body"]')))
    assert caught.value.hint == (
        'Let the reader read the fields of `message.text`: fields = ["subject", "body"]. '
        "Or add `text` to `message.text`."
    )
