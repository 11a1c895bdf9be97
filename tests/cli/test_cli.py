"""The command line as an operator sees it: run in its own process, checked by output and exit codes."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from streamnb import TEXT_ONLY, MultinomialNB, NaiveBayes, load
from streamnb.naive_bayes import memory
from streamnb.storage import read_snapshot, write_snapshot
from tests.support.commands import forked_streamnb
from tests.support.streams import lines_of

CONFIGS = Path(__file__).parents[2] / "configs"
SPAM = str(CONFIGS / "spam.toml")


def streamnb(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run one command in its own process; the tests with a pipe or a signal start Python itself."""
    return subprocess.run(
        [*forked_streamnb(), *words], input=stdin, capture_output=True, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def mail(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with the mailbox's first 600 messages."""
    path = tmp_path_factory.mktemp("mail") / "mail.jsonl"
    path.write_bytes(b"\n".join(lines_of("mailbox")[:600]) + b"\n")
    return path


@pytest.fixture(scope="module")
def snapshot(mail: Path) -> Path:
    """Return a snapshot of a model that has learned the file."""
    path = mail.parent / "history.snb"
    done = streamnb("learn", str(mail), "--config", SPAM, "-o", str(path))

    assert done.returncode == 0, done.stderr
    return path


def test_evaluate_prints_one_object_with_the_promised_figures(mail: Path) -> None:
    """Programs read the JSON object by its keys, so they are part of the interface."""
    done = streamnb("evaluate", str(mail), "--config", SPAM, "--json", "--limit", "500")
    figures = orjson.loads(done.stdout)

    assert done.returncode == 0
    promised = {"n", "accuracy", "log_loss", "roca_loss_pct", "new_class", "messages_per_s", "vocabulary"}
    assert promised | {"classes"} <= set(figures)
    assert figures["new_class"] == 2
    assert 480 <= figures["n"] <= 500
    assert figures["accuracy"] > 0.9


def test_evaluate_leaves_out_unusable_lines_and_prints_how_many(mail: Path, tmp_path: Path) -> None:
    """Standard error has the line and the fault of the first one."""
    path = tmp_path / "mixed.jsonl"
    path.write_bytes(b'{"text": 7}\n' + mail.read_bytes())
    done = streamnb("evaluate", str(path), "--config", SPAM, "--json")

    assert done.returncode == 0
    assert orjson.loads(done.stdout)["refused"] == 1
    assert b"line 1: Field `text` must be a string" in done.stderr


@pytest.mark.parametrize("command", ["score", "evaluate"])
def test_F17_a_command_does_not_append_to_its_own_input(tmp_path: Path, snapshot: Path, command: str) -> None:
    """The scores of `score SNAPSHOT mail.jsonl >> mail.jsonl` would be scored in turn, without end."""
    path = tmp_path / "mail.jsonl"
    path.write_bytes(b'{"text": "win"}\n')
    words = {
        "score": ["score", str(snapshot), str(path)],
        "evaluate": ["evaluate", str(path), "--config", SPAM],
    }[command]
    with path.open("ab") as output:
        done = subprocess.run(
            [sys.executable, "-m", "streamnb", *words], stdout=output, stderr=subprocess.PIPE, check=False
        )

    assert done.returncode == 2
    assert done.stderr.startswith(b"streamnb: Standard output is appended to the input, ")
    assert path.read_bytes() == b'{"text": "win"}\n'


def test_F17_a_plot_does_not_overwrite_the_input(tmp_path: Path) -> None:
    """Under another name of the file neither."""
    path = tmp_path / "mail.jsonl"
    path.write_bytes(b'{"text": "win", "label": "spam"}\n')
    (tmp_path / "plot.html").hardlink_to(path)
    done = streamnb("evaluate", str(path), "--config", SPAM, "--plot", str(tmp_path / "plot.html"))

    assert done.returncode == 2
    assert b"would overwrite the input" in done.stderr
    assert path.read_bytes() == b'{"text": "win", "label": "spam"}\n'


def test_a_snapshot_scores_lines_from_standard_input(snapshot: Path) -> None:
    """Each message gives one line; a line that is not a message gives exit code 65."""
    done = streamnb("score", str(snapshot), stdin=b'{"id": "a", "text": "loans"}\n{"id": 2, "text": "hi"}\n')
    scores = [orjson.loads(line) for line in done.stdout.splitlines()]

    assert done.returncode == 0, done.stderr
    assert [score["id"] for score in scores] == ["a", 2]
    assert all(abs(sum(score["posterior"].values()) - 1) < 1e-12 for score in scores)

    bad = streamnb("score", str(snapshot), stdin=b'{"text": "hi"}\nnonsense\n')

    assert bad.returncode == 65
    assert len(bad.stdout.splitlines()) == 1
    assert b"line 2" in bad.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--share", "0.1"], 2, b"`--share` is for `--feedback partial`, but the feedback is `immediate`"),
        (["--feedback", "partial", "--taught", "7"], 2, b"`--taught` is for `--feedback delayed`"),
        (["--compare", "mnb", "--plot", "x.html"], 2, b"`--plot` draws one model"),
        (["--set", "message.label=class"], 65, b"has a label, so there is nothing to judge"),
    ],
)
def test_evaluate_refuses_options_that_it_could_not_honour(
    mail: Path, words: list[str], code: int, said: bytes
) -> None:
    """The error is one line, and nothing is printed on standard output."""
    done = streamnb("evaluate", str(mail), "--config", SPAM, *words)

    assert done.returncode == code
    assert done.stdout == b""
    assert said in done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("command", ["learn", "evaluate", "tune"])
def test_N2_a_misspelt_label_field_ends_with_65(mail: Path, tmp_path: Path, command: str) -> None:
    """The sentence is the same for each command, and `learn` writes no snapshot."""
    path = tmp_path / "history.snb"
    words = ["-o", str(path)] if command == "learn" else []
    done = streamnb(command, str(mail), "--config", SPAM, "--set", "message.label=lable", *words)

    assert done.returncode == 65
    assert f"None of the 600 lines of {mail} has a label, so there is nothing to ".encode() in done.stderr
    assert b"Set `message.label` of the configuration" in done.stderr
    assert not path.exists()


def test_N2_an_empty_file_is_learned_as_nothing(tmp_path: Path) -> None:
    """Zero lines read are no error."""
    (tmp_path / "empty.jsonl").write_bytes(b"")
    path = tmp_path / "history.snb"

    assert streamnb("learn", str(tmp_path / "empty.jsonl"), "--config", SPAM, "-o", str(path)).returncode == 0
    assert path.exists()


@pytest.mark.parametrize(
    "words",
    [
        ["learn", "{missing}", "--config", SPAM, "-o", "{there}"],
        ["learn", "{missing}", "--config", SPAM, "-o", "{nowhere}"],
        ["snapshot", "merge", "{missing}", "{missing}", "-o", "{there}"],
        ["snapshot", "grow", "{missing}", "--config", SPAM, "-o", "{there}"],
        ["snapshot", "relabel", "{missing}", "a=b", "-o", "{there}"],
        ["snapshot", "export", "{missing}", "-o", "{there}"],
    ],
)
def test_N9_a_file_that_cannot_be_written_is_refused_before_anything_is_read(
    tmp_path: Path, words: list[str]
) -> None:
    """The history may take an hour; here the input does not exist, and the error is of the output."""
    there, nowhere = tmp_path / "there.csv", tmp_path / "no" / "such.snb"
    there.touch()
    missing = tmp_path / "missing"
    done = streamnb(*(word.format(missing=missing, there=there, nowhere=nowhere) for word in words))

    assert done.returncode == 2
    assert str(nowhere if "{nowhere}" in words else there).encode() in done.stderr
    assert b"missing" not in done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ["evaluate", "{missing}", "--config", SPAM, "--plot", "{nowhere}"],
        ["evaluate", "{missing}", "--config", SPAM, "--compare", "mnb,nobody"],
        ["snapshot", "export", "{missing}", "-o", "counts.xls"],
        ["produce", "{missing}", "--topic", "mail", "--config", SPAM, "--create", "-1"],
        ["check", SPAM, "--create", "-1"],
    ],
)
def test_N9_an_option_that_cannot_be_honoured_is_refused_first(tmp_path: Path, words: list[str]) -> None:
    """Before the input is read, and before a broker is asked or a topic made."""
    names = {"missing": tmp_path / "missing", "nowhere": tmp_path / "no" / "such.html"}
    done = streamnb(*(word.format(**names) for word in words))

    assert done.returncode == 2, done.stderr
    assert b"missing" not in done.stderr


def test_N9_produce_makes_no_topic_for_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """The file is opened before a broker is asked; no broker listens on port 1."""
    words = ["--topic", "mail", "--bootstrap-servers", "127.0.0.1:1", "--create", "1"]
    done = streamnb("produce", str(tmp_path / "missing"), *words)

    assert done.returncode != 0
    assert b"missing: No such file" in done.stderr


def test_N5_run_logs_a_category_that_is_text(tmp_path: Path) -> None:
    """A configuration can list a field of text among the categories by mistake."""
    lines = [orjson.dumps({"subject": f"about {i}", "label": "ab"[i % 2]}) for i in range(200)]
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines))
    config = tmp_path / "mail.toml"
    config.write_text(
        f"""
message = {{ text = [], category = ["subject"] }}
views = [{{ name = "about", reader = {{ kind = "categories", fields = ["subject"] }} }}]
source = {{ kind = "jsonl", path = "{tmp_path}/in.jsonl" }}
sink = {{ kind = "jsonl", path = "{tmp_path}/out.jsonl" }}
dead_letters.sink = {{ kind = "jsonl", path = "{tmp_path}/dead.jsonl" }}
engine = {{ start = "earliest" }}
snapshots = {{ directory = "{tmp_path}/snapshots" }}
"""
    )
    done = streamnb("run", str(config), "--until-end")

    assert done.returncode == 0, done.stderr
    assert done.stderr.count(b"the category `subject` has 200 different values in 200 messages") == 1
    assert b" WARNING py.warnings: " in done.stderr


def test_inspect_and_verify_agree_on_what_was_learned(mail: Path, snapshot: Path) -> None:
    """Verify recomputes the digest that inspect prints, and every labelled message was learned."""
    inspected = orjson.loads(streamnb("snapshot", "inspect", str(snapshot), "--json").stdout)
    verified = streamnb("snapshot", "verify", str(snapshot))

    assert verified.returncode == 0
    assert inspected["digest"]["all"].encode() in verified.stdout
    assert inspected["learned"] == sum(b'"label":null' not in line for line in mail.read_bytes().splitlines())


def test_verify_refuses_a_damaged_snapshot_with_one_sentence(snapshot: Path, tmp_path: Path) -> None:
    """The error is one line with the path, and the exit code is 74."""
    damaged = tmp_path / "damaged.snb"
    data = bytearray(snapshot.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    done = streamnb("snapshot", "verify", str(damaged))

    assert done.returncode == 74
    assert str(damaged).encode() in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_verify_refuses_a_digest_that_is_not_the_states(snapshot: Path, tmp_path: Path) -> None:
    """The file is intact, but its digest belongs to another state."""
    held = read_snapshot(snapshot)
    held.digest = {**held.digest, "all": "0" * 32}
    other = tmp_path / "other.snb"
    write_snapshot(other, held)
    done = streamnb("snapshot", "verify", str(other))

    assert done.returncode == 74
    assert f"{other} records the digest {'0' * 32}, but its state has the digest ".encode() in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_a_snapshot_without_its_hash_table_is_the_same_state(snapshot: Path, tmp_path: Path) -> None:
    """The hash table is rebuilt, and leads to the same rows."""
    held = read_snapshot(snapshot)
    held.sections = {name: array for name, array in held.sections.items() if "index" not in name}
    other = tmp_path / "other.snb"
    write_snapshot(other, held)

    assert streamnb("snapshot", "verify", str(other)).stdout.endswith(f"{held.digest['all']}\n".encode())


def test_explain_names_tokens_and_adds_up(snapshot: Path) -> None:
    """The contributions sum to the difference that is printed."""
    done = streamnb("explain", str(snapshot), "a loan at a low rate", "--top", "100")
    lines = done.stdout.decode().splitlines()
    first = next(i for i, line in enumerate(lines) if " against " in line)
    total = float(lines[first].rsplit(" ", 1)[1])

    assert done.returncode == 0
    assert total == pytest.approx(sum(float(line.split()[0]) for line in lines[first + 1 :]), abs=2e-3)


def test_explain_prints_the_ratio_of_the_posteriors_it_prints(snapshot: Path) -> None:
    """The contributions sum to the ratio before the correction for wrong labels, which is another number."""
    done = streamnb("explain", str(snapshot), "a loan at a low rate")
    lines = done.stdout.decode().splitlines()
    first, second = (float(line.split()[0]) for line in lines[2:4])
    corrected = float(lines[5].removeprefix("The logarithm of the ratio of these posteriors is ").rstrip("."))

    assert lines[0] == "The text was scored as the field `text`."
    assert corrected == pytest.approx(math.log(first / second), rel=1e-2)
    assert lines[6] == "Before the correction for wrong labels it is the sum of these contributions:"
    assert abs(float(lines[7].rsplit(" ", 1)[1])) > abs(corrected)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"text": ["body", "subject"], "number": ["amount"]},
            "The text was scored as the field `body`. Missing fields: `subject`, `amount`.",
        ),
        (
            {"text": [], "number": ["amount"]},
            "The model reads no field of text: this is the score of a message without any field.",
        ),
    ],
)
def test_explain_names_the_field_that_the_text_fills(
    fields: dict[str, list[str]], sentence: str, tmp_path: Path
) -> None:
    """A model of the product head has no correction, and its output no sentence about one."""
    lines, config, path = tmp_path / "some.jsonl", tmp_path / "some.toml", tmp_path / "some.snb"
    lines.write_text(
        "".join(
            f'{{"body": "win", "subject": "hi", "amount": {amount}, "label": "{label}"}}\n'
            for amount, label in ((1, "spam"), (5, "ham"), (2, "spam"))
        )
    )
    message = ", ".join(f"{name} = {orjson.dumps(names).decode()}" for name, names in fields.items())
    reader = (
        '{ kind = "words", fields = ["body"] }'
        if fields["text"]
        else '{ kind = "numbers", fields = ["amount"] }'
    )
    config.write_text(
        f"message = {{ {message} }}\n"
        f'model.head = "product"\n'
        f'views = [{{ name = "one", reader = {reader} }}]\n'
        'source = { kind = "jsonl", path = "-" }\n'
        'sink = { kind = "jsonl", path = "-" }\n'
    )
    assert streamnb("learn", str(lines), "--config", str(config), "-o", str(path)).returncode == 0
    done = streamnb("explain", str(path), "win")

    assert done.returncode == 0, done.stderr
    assert done.stdout.decode().splitlines()[0] == sentence
    assert b"correction" not in done.stdout


def test_generate_draws_a_stream_that_can_be_learned(snapshot: Path, tmp_path: Path) -> None:
    """The same seed draws the same lines, and a model that learns them separates their classes."""
    drawn = [streamnb("generate", str(snapshot), "-n", "400", "--seed", seed) for seed in ("1", "1", "2")]
    assert all(done.returncode == 0 for done in drawn), drawn[0].stderr
    assert drawn[0].stdout == drawn[1].stdout != drawn[2].stdout
    messages = [orjson.loads(line) for line in drawn[0].stdout.splitlines()]
    assert [message["id"] for message in messages] == [f"g-{i}" for i in range(400)]
    assert {message["label"] for message in messages} == {"ham", "spam"}
    path = tmp_path / "drawn.jsonl"
    path.write_bytes(drawn[0].stdout)
    figures = orjson.loads(streamnb("evaluate", str(path), "--config", SPAM, "--json").stdout)
    assert figures["refused"] == 0
    assert figures["accuracy"] > 0.8


def test_generate_says_what_it_cannot_draw(mail: Path, tmp_path: Path) -> None:
    """No text can be made of pairs of words; the error names the view."""
    accurate = tmp_path / "accurate.snb"
    config = str(CONFIGS / "spam-accurate.toml")
    assert streamnb("learn", str(mail), "--config", config, "-o", str(accurate)).returncode == 0
    done = streamnb("generate", str(accurate))
    assert (done.returncode, done.stdout) == (65, b"")
    assert b"text cannot be rebuilt from pairs" in done.stderr


def test_run_over_files_resumes_where_it_stopped(mail: Path, tmp_path: Path) -> None:
    """Source and sink are files of JSON lines; a second run finds nothing new and publishes nothing."""
    scores, dead = tmp_path / "scores.jsonl", tmp_path / "dead.jsonl"
    changes = {
        "source": f'{{ kind = "jsonl", path = "{mail}" }}',
        "sink": f'{{ kind = "jsonl", path = "{scores}" }}',
        "dead_letters.sink": f'{{ kind = "jsonl", path = "{dead}" }}',
        "snapshots.directory": str(tmp_path / "snapshots"),
    }
    words = ["run", SPAM, *(word for key, value in changes.items() for word in ("--set", f"{key}={value}"))]
    first, second = streamnb(*words), streamnb(*words)

    assert first.returncode == 0, first.stderr
    assert second.returncode == 0, second.stderr
    assert len(scores.read_bytes().splitlines()) == 600
    assert b"ready at" in second.stderr


def test_learned_history_comes_first_and_the_stream_after(mail: Path, snapshot: Path, tmp_path: Path) -> None:
    """`run --from` starts from the snapshot that `learn` wrote, and is refused once there are snapshots."""
    changes = {
        "source": f'{{ kind = "jsonl", path = "{mail}" }}',
        "sink": '{ kind = "jsonl", path = "-" }',
        "dead_letters.sink": f'{{ kind = "jsonl", path = "{tmp_path / "dead"}" }}',
        "snapshots.directory": str(tmp_path / "snapshots"),
    }
    words = ["run", SPAM, *(word for key, value in changes.items() for word in ("--set", f"{key}={value}"))]
    done = streamnb(*words, "--from", str(snapshot))
    first = orjson.loads(done.stdout.splitlines()[0])

    assert done.returncode == 0, done.stderr
    assert first["learned"] > 500

    again = streamnb(*words, "--from", str(snapshot))

    assert again.returncode == 2
    assert b"snapshots in the directory already" in again.stderr


def test_an_engine_goes_on_from_a_model_that_python_saved(mail: Path, tmp_path: Path) -> None:
    """The scores are those of the saved model, to the bit; its snapshot gives the engine's model back."""
    model = NaiveBayes(TEXT_ONLY)
    model.learn_many([{"text": "win money"}, {"text": "lunch at noon"}] * 20, ["spam", "ham"] * 20)
    model.save(tmp_path / "saved.snb")
    changes = {
        "source": f'{{ kind = "jsonl", path = "{mail}" }}',
        "sink": '{ kind = "jsonl", path = "-" }',
        "dead_letters.sink": f'{{ kind = "jsonl", path = "{tmp_path / "dead"}" }}',
        "snapshots.directory": str(tmp_path / "snapshots"),
    }
    words = [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]
    done = streamnb("run", SPAM, *words, "--from", str(tmp_path / "saved.snb"))
    first = orjson.loads(done.stdout.splitlines()[0])
    x = orjson.loads(mail.read_bytes().splitlines()[0])

    assert done.returncode == 0, done.stderr
    assert first["learned"] == 40
    assert first["posterior"] == model.predict_proba_one(x)

    (newest,) = sorted((tmp_path / "snapshots").glob("snapshot-*.snb"))[-1:]
    again = load(newest)
    assert again.learned_ > 600
    assert again.digest() == read_snapshot(newest, memory).digest


@pytest.mark.parametrize("labels", [(1, 0), (True, False)])
def test_a_saved_model_whose_labels_are_no_text_is_refused_until_they_are(
    labels: tuple[int, int], mail: Path, tmp_path: Path
) -> None:
    """By one sentence at the start, with the command that names the classes; it failed at the first label."""
    model, saved, named = NaiveBayes(TEXT_ONLY), tmp_path / "saved.snb", tmp_path / "named.snb"
    model.learn_many([{"text": "win money"}, {"text": "lunch at noon"}] * 20, list(labels) * 20)
    model.save(saved)
    changes = {
        "source": f'{{ kind = "jsonl", path = "{mail}" }}',
        "sink": f'{{ kind = "jsonl", path = "{tmp_path / "scores"}" }}',
        "dead_letters.sink": f'{{ kind = "jsonl", path = "{tmp_path / "dead"}" }}',
        "snapshots.directory": str(tmp_path / "snapshots"),
    }
    words = [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]
    done = streamnb("run", SPAM, *words, "--from", str(saved))
    assert (done.returncode, b"Traceback" in done.stderr) == (2, False)
    assert (
        b"labels of a stream are text. Rename them to strings with `streamnb snapshot relabel" in done.stderr
    )
    assert streamnb("snapshot", "grow", str(saved), "--config", SPAM, "-o", str(named)).returncode == 2

    new = [f"{label}={name}" for label, name in zip(labels, ("spam", "ham"), strict=True)]
    assert streamnb("snapshot", "relabel", str(saved), *new, "--map-labels", "-o", str(named)).returncode == 0
    settings: Any = read_snapshot(named, memory).settings
    assert settings["message"]["label_values"][orjson.dumps(labels[0]).decode()] == "spam"
    sent = [orjson.dumps(label).decode() for label in labels]
    words += ["--set", f'message.label_values={{ {sent[0]} = "spam", {sent[1]} = "ham" }}']
    done = streamnb("run", SPAM, *words, "--from", str(named))
    assert done.returncode == 0, done.stderr


def test_explain_refuses_a_model_that_does_not_read_its_text(tmp_path: Path) -> None:
    """As `score` does; a classic estimator saw no word of it and printed equal posteriors."""
    model = MultinomialNB()
    for x, y in (({"win": 1}, "spam"), ({"lunch": 1}, "ham")):
        model.learn_one(x, y)
    model.save(tmp_path / "saved.snb")
    done = streamnb("explain", str(tmp_path / "saved.snb"), "win")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"which works only from Python" in done.stderr


def test_F8_a_class_cannot_act_on_a_terminal(tmp_path: Path) -> None:
    """Python accepts any text as a label; commands print its control characters escaped."""
    model, path = NaiveBayes(TEXT_ONLY), tmp_path / "saved.snb"
    model.learn_many([{"text": "win"}, {"text": "lunch"}] * 2, ["a\x1b[31m", "b\x9b"] * 2)
    model.save(path)
    for words in (["explain", str(path), "win"], ["snapshot", "inspect", str(path)]):
        done = streamnb(*words)
        assert done.returncode == 0, done.stderr
        assert not {"\x1b", "\x9b"} & set(done.stdout.decode())
        assert "a\\" in done.stdout.decode()


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["run", "nowhere.toml"], 2, "nowhere.toml"),
        (["run", SPAM, "--set", "engine.pol=1"], 2, "Did you mean"),
        (["run", SPAM, "--set", "source.topics=[]"], 2, "topics"),
        (["evaluate", "nowhere.jsonl", "--config", SPAM], 2, "nowhere.jsonl"),
        (["score", "nowhere.snb"], 2, "nowhere.snb"),
        (["bogus"], 2, "bogus"),
        (["learn", "nowhere.jsonl", "--config", SPAM], 2, "--output"),
    ],
)
def test_a_mistake_is_one_sentence_and_an_exit_code(
    words: list[str], code: int, sentence: str, tmp_path: Path
) -> None:
    """Standard error has the sentence and no traceback."""
    done = (
        streamnb(*words, "--set", f"snapshots.directory={tmp_path}")
        if words[0] == "run"
        else streamnb(*words)
    )

    assert code == done.returncode, done.stderr
    assert sentence in done.stderr.decode()
    assert b"Traceback" not in done.stderr


def test_produce_needs_exactly_one_source_of_broker_addresses(mail: Path) -> None:
    """Neither option and both options are refused, each with its own sentence."""
    neither = streamnb("produce", str(mail), "--topic", "mail")
    both = streamnb("produce", str(mail), "--topic", "mail", "-c", SPAM, "--bootstrap-servers", "127.0.0.1:1")

    assert (neither.returncode, both.returncode) == (2, 2)
    assert b"No broker given. Pass --config or --bootstrap-servers." in neither.stderr
    assert b"Both --config and --bootstrap-servers name a broker." in both.stderr


def test_no_broker_is_exit_code_69_and_names_the_address(tmp_path: Path) -> None:
    """The configured timeout ends the attempt, and there is no traceback."""
    done = streamnb(
        "run",
        SPAM,
        "--set",
        "kafka.bootstrap_servers=127.0.0.1:1",
        "--set",
        "kafka.bootstrap_timeout_ms=1000",
        "--set",
        f"snapshots.directory={tmp_path}",
    )

    assert done.returncode == 69
    assert b"127.0.0.1:1" in done.stderr
    assert b"Traceback" not in done.stderr


def test_the_demo_ends_by_itself_and_prints_a_summary() -> None:
    """It runs on the embedded broker, and one record on the way is a dead letter."""
    done = streamnb("demo", "--messages", "400", "--json")
    summary = orjson.loads(done.stdout)

    assert done.returncode == 0, done.stderr
    assert (summary["messages"], summary["scored"], summary["dead_letters"]) == (400, 400, 1)
    assert summary["accuracy"] > 0.9


def test_a_reader_that_closes_the_pipe_is_no_error(mail: Path, snapshot: Path) -> None:
    """`streamnb score ... | head -1` exits with code 0 and prints no error."""
    command = f'"{sys.executable}" -m streamnb score "{snapshot}" "{mail}" | head -1'
    done = subprocess.run(["bash", "-c", command], capture_output=True, timeout=60, check=False)

    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == b""


def test_the_demo_runs_until_ctrl_c_and_then_prints_a_summary() -> None:
    """It prints live scores until then."""
    process = subprocess.Popen(
        [sys.executable, "-m", "streamnb", "demo", "--rate", "100"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    shown = [process.stdout.readline() for _ in range(50)]
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=30)

    assert process.returncode == 0
    assert sum(" new " in line for line in shown) > 40
    assert "digest" in rest
