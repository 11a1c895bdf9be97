"""Every model through a settings file: built, learned, kept in a snapshot, and gone on from."""

from pathlib import Path

import orjson
import pytest

from streamnb.base.batch import Batch
from streamnb.cli.history import History
from streamnb.config import (
    Settings,
    build_decoder,
    build_model,
    decode_settings,
    load_settings,
    restore_model,
    snapshot_of,
)
from streamnb.errors import SettingsError
from streamnb.storage import read_snapshot, snapshot_file, write_snapshot

VIEWS = {
    "bernoulli": """
[[views]]
name = "coins"
reader = { kind = "words" }
event_model = { kind = "bernoulli", unknown = "smooth", smoothing = { kind = "beta", a = 0.5, b = 1.0 } }
""",
    "complement": """
[prior]
kind = "fallback"
[[views]]
name = "words"
reader = { kind = "words" }
event_model = { kind = "multinomial", weight = "counts", unknown = "smooth", complement = true }
""",
    "boolean": """
[model]
head = "product"
[[views]]
name = "words"
reader = { kind = "words" }
event_model = { kind = "multinomial", weight = "boolean" }
""",
    "categories and flags": """
[[views]]
name = "kinds"
reader = { kind = "categories", fields = ["country", "device"] }
event_model = { kind = "categorical", smoothing = { kind = "dirichlet", mu = 3.0 } }
[[views]]
name = "flags"
reader = { kind = "flags", fields = ["paid"] }
""",
    "numbers": """
[[views]]
name = "numbers"
reader = { kind = "numbers", fields = ["amount", "age"] }
event_model = { kind = "gaussian", variance = "shared", robust = 0.001 }
""",
    "given variance": """
[[views]]
name = "amount"
reader = { kind = "number", field = "amount" }
event_model = { kind = "gaussian", variance = 2.5 }
""",
    "discriminant": """
[[views]]
name = "numbers"
reader = { kind = "numbers", fields = ["amount", "age"] }
event_model = { kind = "multivariate", covariance = "class" }
""",
    "ranges": """
[[views]]
name = "numbers"
reader = { kind = "numbers", fields = ["amount"] }
event_model = { kind = "binned", edges = [2, 4] }
[[views]]
name = "learned"
reader = { kind = "numbers", fields = ["age"] }
event_model = { kind = "binned", bins = 3 }
""",
    "everything under the calibrated head": """
[[views]]
name = "words"
reader = { kind = "words" }
[[views]]
name = "kinds"
reader = { kind = "categories", fields = ["country"] }
[[views]]
name = "numbers"
reader = { kind = "numbers", fields = ["amount"] }
event_model = { kind = "multivariate" }
[[views]]
name = "age"
reader = { kind = "numbers", fields = ["age"] }
event_model = { kind = "binned" }
""",
}
MESSAGE = """
[message]
category = ["country", "device"]
flag = ["paid"]
number = ["amount", "age"]
"""


def _mail(path: Path, first: int, last: int) -> Path:
    lines = []
    for i in range(first, last):
        message = {
            "text": f"{'win cash' if i % 3 else 'lunch noon'} number {i % 7}",
            "country": ["no", "de", None][i % 3],
            "device": "phone" if i % 4 else "desk",
            "paid": i % 5 == 0,
            "amount": (i * 7) % 5 + (2.5 if i % 3 else 0.0),
            "label": "spam" if i % 3 else "ham",
        }
        if i % 6:
            message["age"] = 20 + (i * 11) % 60
        lines.append(orjson.dumps(message))
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


@pytest.mark.parametrize("views", VIEWS.values(), ids=VIEWS)
def test_a_model_of_settings_goes_on_from_its_snapshot(views: str, tmp_path: Path) -> None:
    """Half of the stream, a file, the other half: the state of a model that saw it all."""
    config = tmp_path / "model.toml"
    config.write_text(MESSAGE + views)
    settings = load_settings(config)
    decoder = build_decoder(settings)

    def batches(first: int, last: int) -> list[Batch]:
        history = History(str(_mail(tmp_path / "mail.jsonl", first, last)), decoder)
        found = [messages.batch for _, messages in history.batches()]
        assert history.refused == 0
        return found

    whole, half = build_model(settings), build_model(settings)
    for batch in batches(0, 500):
        whole.step(batch)
    for batch in batches(0, 250):
        half.step(batch)
    write_snapshot(tmp_path / "half.snb", snapshot_of(settings, half))
    held = read_snapshot(tmp_path / "half.snb")
    assert held.digest == half.digest()
    _, model = restore_model(held)
    for batch in batches(250, 500):
        scores = model.step(batch)
    assert model.digest() == whole.digest()
    assert scores.posterior[-1].sum() == pytest.approx(1.0)
    right = sum(
        scores.classes[int(row.argmax())] == label
        for row, label in zip(scores.posterior, batch.labels, strict=True)
    )
    assert right / len(batch) > 0.6


@pytest.mark.parametrize(
    ("views", "what"),
    [
        ('reader = { kind = "numbers" }', "does not name the fields"),
        ('reader = { kind = "categories", field = "country" }', "does not name the fields"),
        ('reader = { kind = "numbers", fields = ["height"] }', "which `message.number` does not list"),
        ('reader = { kind = "flags", fields = ["country"] }', "which `message.flag` does not list"),
        ('reader = { kind = "terms", field = "text" }', "works only from Python"),
        (
            'reader = { kind = "flags", fields = ["paid"] }\nevent_model = { kind = "gaussian" }',
            "the reader Flags needs the event model Bernoulli",
        ),
        (
            (
                'reader = { kind = "words" }\n'
                'event_model = { kind = "bernoulli", smoothing = { kind = "beta", a = -1.0 } }'
            ),
            "`a` must be",
        ),
        (
            (
                'reader = { kind = "numbers", fields = ["age"] }\n'
                'event_model = { kind = "binned", edges = [2, 1] }'
            ),
            "must grow",
        ),
        (
            (
                'reader = { kind = "numbers", fields = ["age"] }\n'
                'event_model = { kind = "gaussian", variance = "curved" }'
            ),
            "variance",
        ),
    ],
)
def test_a_view_that_cannot_be_is_refused_by_name(views: str, what: str, tmp_path: Path) -> None:
    """When the settings are read, or when the decoder is made of them."""
    config = tmp_path / "model.toml"
    config.write_text(f'{MESSAGE}\n[[views]]\nname = "odd"\n{views}\n')
    with pytest.raises(SettingsError, match=what):
        build_decoder(load_settings(config))


def views_of_numbers(n: int) -> Settings:
    """Return settings with n views of one number each."""
    names = [f"n{i}" for i in range(n)]
    views = [{"name": name, "reader": {"kind": "number", "field": name}} for name in names]
    return decode_settings({"message": {"text": [], "number": names}, "views": views}, "the test")


def test_F3_a_model_of_more_sections_than_a_snapshot_has_is_refused_at_the_start() -> None:
    """The largest model that is built can be written and read, after it has learned too."""
    with pytest.raises(SettingsError, match="The 30 views of the model need 69 sections of a snapshot"):
        build_model(views_of_numbers(30))
    settings = views_of_numbers(27)
    built = build_model(settings)
    before = built.freeze().sections.keys()
    built.learn_one({f"n{i}": 1.5 for i in range(27)}, "spam")
    assert built.freeze().sections.keys() == before
    data = b"".join(snapshot_file.encode(snapshot_of(settings, built)))
    assert restore_model(snapshot_file.decode(data))[1].digest() == built.digest()
