"""Configuration: a TOML file into typed, frozen settings. An unknown key is refused, with the nearest one.

Most tables are classes in the package that reads them; `configs/streamnb.toml` shows them all. One
precedence: the file, then ``--set table.key=value``. No environment variable is read, but for a secret that
says so: ``sasl_plain_password = { env = "KAFKA_PASSWORD" }``.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import msgspec

from streamnb.base import is_secret
from streamnb.config.endpoints import (
    Client,
    ConfluentInput,
    ConfluentOutput,
    InputSettings,
    OutputSettings,
    TopicOutput,
    TopicsInput,
)
from streamnb.config.known import allowed, known_settings, nearest
from streamnb.config.renamed import FIXED, refuse_former
from streamnb.engine import DeadLetterLimits, EngineSettings, GuardSettings, MetricsSettings, SnapshotSettings
from streamnb.errors import DataError, PathError, SettingsError
from streamnb.evaluation import DriftSettings
from streamnb.naive_bayes import BYTES_MAX, BYTES_MIN, Forgetting, HeadKind, Prior, Tokenizer, View, Words
from streamnb.storage import files
from streamnb.wire import MessageFields, Output

FILE_BYTES_MAX = 1 << 20
EXAMPLES = Path(__file__).parents[1] / "configs"
DEPTH_MAX = 20


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The model as a whole.

    Parameters
    ----------
    name : str
        In every score.
    head : {"calibrated", "product"}, optional
        By default calibrated if some view reads text.
    trust : bool
        Whether the calibrated head also learns how far to trust each token; the product head has no trust.
    classes : tuple of str
        Declared before anything is learned; others may appear.
    classes_max : int or None
        A label past it becomes a dead letter. ``None``, no limit, is only in snapshots that were saved from
        Python.
    bytes_max : int or None
        Memory of the counts, with what a snapshot of them needs meanwhile; at the limit the rarest sixteenth
        of the tokens is evicted. ``None``, no limit, is only in snapshots that were saved from Python.
    max_tokens : int or None
        Tokens of all views together, where a number is wanted besides.
    """

    name: str = "streamnb"
    head: HeadKind | None = None
    trust: bool = True
    classes: tuple[str, ...] = ()
    classes_max: int | None = 32
    bytes_max: int | None = 256 << 20
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        """Raises ``ValueError`` where more classes are declared than allowed, or a bound is too small."""
        if self.classes_max is not None and self.classes_max < max(1, len(self.classes)):
            raise ValueError("`classes_max` must be at least 1 and not below the number of `classes`")
        if self.bytes_max is not None and not BYTES_MIN <= self.bytes_max <= BYTES_MAX:
            raise ValueError(
                f"`bytes_max` must be from {BYTES_MIN} to {BYTES_MAX} bytes, not {self.bytes_max}"
            )
        if self.max_tokens is not None and not 16 <= self.max_tokens <= 1 << 40:
            raise ValueError("`max_tokens` must be at least 16, and no more than 2^40")


class DeadLetterSettings(DeadLetterLimits, frozen=True, forbid_unknown_fields=True):
    """Limits, and where dead letters go; without a sink the engine does not start."""

    sink: OutputSettings | None = None


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything there is to set; `configs/streamnb.toml` shows it all with its reasons."""

    model: ModelSettings = ModelSettings()
    tokens: Tokenizer = Tokenizer()
    views: tuple[View, ...] = (View("words", Words()),)
    prior: Prior | None = None
    forgetting: Forgetting = Forgetting()
    message: MessageFields = MessageFields()
    kafka: Client = {}
    confluent: Client = {}
    source: InputSettings | None = None
    sink: OutputSettings | None = None
    dead_letters: DeadLetterSettings = DeadLetterSettings()
    engine: EngineSettings = EngineSettings()
    guard: GuardSettings = GuardSettings()
    snapshots: SnapshotSettings = SnapshotSettings()
    output: Output = Output()
    drift: DriftSettings = DriftSettings()
    metrics: MetricsSettings = MetricsSettings()


def load_settings(path: Path, changes: Sequence[str] = ()) -> Settings:
    """Return the settings of a file, with ``table.key=value`` changes over them.

    Raises
    ------
    StorageError
        The file cannot be read.
    SettingsError
        The file is not TOML, or has a key that is not a setting.
    """
    try:
        tables = tomllib.loads(files.read_text(path, FILE_BYTES_MAX))
    except PathError as error:
        example = EXAMPLES / path.name
        if path.exists() or not example.is_file():
            raise
        raise PathError(error.what, f"Check the path, or copy the example {example}.") from error
    except DataError as error:
        raise SettingsError(error.what, error.hint) from error
    except ValueError as error:  # a TOMLDecodeError, or a number of more digits than Python reads
        raise SettingsError(f"{path} is not TOML: {error}.", "Correct that line.") from error
    except RecursionError as error:
        raise SettingsError(
            f"{path} is nested too deeply.", "Flatten the file; no setting is nested this deeply."
        ) from error
    for change in changes:
        _apply(tables, change)
    _check_text(tables, str(path))
    return decode_settings(tables, str(path))


def decode_settings(tables: Mapping[str, object], where: str) -> Settings:
    """Return tables as typed settings; errors name `where`.

    Raises
    ------
    SettingsError
        A key is unknown or had another name, a value is of the wrong type or out of its range, or a secret
        is written out.
    """
    refuse_former(tables, where)
    try:
        settings = msgspec.convert(tables, Settings)
    except msgspec.ValidationError as error:
        raise _mistake(str(error), where) from error
    _check_numbers(msgspec.to_builtins(settings), where)
    for client in _clients(settings):
        for key in client:
            if is_secret(key, client[key]) and not isinstance(client[key], dict):
                raise SettingsError(
                    f"{where}: the secret `{key}` is written in the file.",
                    f'Put it into an environment variable and write {key} = {{ env = "NAME" }}.',
                )
    return settings


def client_settings(settings: Settings, endpoint: TopicsInput | TopicOutput | None = None) -> Client:
    """Return the client's settings for one endpoint, secrets looked up; by default those of ``[kafka]``.

    The endpoint's own `client` goes over the table that all endpoints of its kind share.

    Raises
    ------
    SettingsError
        The environment lacks a variable that is referred to.
    """
    own = {} if endpoint is None else endpoint.client
    if isinstance(endpoint, ConfluentInput | ConfluentOutput):
        merged = {**_dotted(settings.confluent), **_dotted(own)}
    else:
        merged = {**settings.kafka, **own}
    return {key: _looked_up(key, value) for key, value in merged.items()}


def _dotted(tables: Mapping[str, object], above: str = "") -> Client:
    """``bootstrap.servers = "..."`` is a table in TOML and one name to librdkafka; a reference stays."""
    found: Client = {}
    for key, value in tables.items():
        if isinstance(value, dict) and set(value) != {"env"}:
            found |= _dotted(value, f"{above}{key}.")
        else:
            found[above + key] = value
    return found


def _looked_up(key: str, value: object) -> object:
    if not isinstance(value, dict):
        return value
    name = value.get("env")
    if set(value) != {"env"} or not isinstance(name, str):
        raise SettingsError(f"`{key}` is a table.", f'Write a value, or {key} = {{ env = "NAME" }}.')
    if name not in os.environ:
        raise SettingsError(f"`{key}` asks for the environment variable {name}, which is not set.", "Set it.")
    return os.environ[name]


def _clients(settings: Settings) -> Iterator[Client]:
    yield settings.kafka
    yield _dotted(settings.confluent)
    for endpoint in (settings.source, settings.sink, settings.dead_letters.sink):
        if isinstance(endpoint, TopicsInput | TopicOutput):
            yield _dotted(endpoint.client)


def _apply(tables: dict[str, object], change: str) -> None:
    """``a.b=c`` into the tables; c is TOML, or text where it is none."""
    path, equals, text = change.partition("=")
    keys = _keys(path)
    if not equals or not all(keys):
        raise SettingsError(
            f"--set {change!r} does not set a key to a value.", "Write --set table.key=value."
        )
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        value = text
    table = tables
    for key in keys[:-1]:
        inner = table.setdefault(key, {})
        if not isinstance(inner, dict):
            raise SettingsError(
                f"--set {path.strip()}: `{key}` is not a table.", "Name a table.key of the file."
            )
        table = cast("dict[str, object]", inner)
    table[keys[-1]] = value


def _keys(path: str) -> list[str]:
    """Return the keys of a dotted path; as in TOML, a key in quotes may have dots."""
    keys: list[str] = []
    try:
        table: object = tomllib.loads(f"{path} = 0")
    except ValueError:
        return path.strip().split(".")
    while isinstance(table, dict):
        ((key, table),) = table.items()
        keys.append(key)
    return keys


def _check_numbers(value: object, where: str, path: str = "") -> None:
    """Refuse numbers that no setting can mean, wherever they are: a snapshot could not hold them.

    Raises
    ------
    SettingsError
        A number is infinite or NaN, or an integer beyond 2^53.
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            _check_numbers(inner, where, f"{path}.{key}" if path else key)
    elif isinstance(value, list | tuple):
        for i, inner in enumerate(value):
            _check_numbers(inner, where, f"{path}[{i}]")
    elif (isinstance(value, float) and not math.isfinite(value)) or (
        isinstance(value, int) and abs(value) > 1 << 53
    ):
        raise SettingsError(
            f"{where}: `{path}` is {value}; a number must be finite, and an integer within 2^53.",
            "Correct that number.",
        )


def _check_text(value: object, where: str, depth: int = 0) -> None:
    """Refuse text that no path, topic or class can have: a byte 0, or bytes that are not UTF-8.

    Raises
    ------
    SettingsError
        A key or a value has it, or the tables are nested too deeply to look into all.
    """
    if depth > DEPTH_MAX:
        raise SettingsError(f"{where} is nested too deeply.", "Flatten it; no setting is nested this deeply.")
    if isinstance(value, dict | list):
        for inner in [*value, *value.values()] if isinstance(value, dict) else value:
            _check_text(inner, where, depth + 1)
    elif isinstance(value, str) and any(c == "\0" or "\ud800" <= c <= "\udfff" for c in value):
        raise SettingsError(f"{where}: {value!r} has a byte 0, or bytes that are not UTF-8.", "Correct it.")


def _mistake(message: str, where: str) -> SettingsError:
    what, _, place = message.partition(" - at ")
    path = place.strip("`").removeprefix("$").removeprefix(".")
    unknown = re.search(r"unknown field `(.*)`", what)
    known = known_settings(Settings)
    if unknown is None:
        is_of_the_type = what.startswith(("Invalid", "Expected")) and not path.endswith("]")
        hint = allowed(_without_indices(path), known) if is_of_the_type else "Correct that value."
        return SettingsError(f"{where}: `{path}`: {what}.", hint)
    name = f"{path}.{unknown[1]}" if path else unknown[1]
    meant = nearest(_without_indices(name), [one for one in known if one not in FIXED])
    return SettingsError(f"{where}: `{name}` is not a setting.", f"Did you mean `{meant}`?")


def _without_indices(path: str) -> str:
    """Return the path of a setting in the tables of a list, such as `views.name` for `views[0].name`."""
    return re.sub(r"\[[^]]*\]", "", path)


def paths() -> list[str]:
    """Return the dotted path of every setting that a file may hold, those of unions included.

    Examples
    --------
    >>> "engine.poll_timeout_ms" in paths()
    True
    """
    return [path for path in known_settings(Settings) if path not in FIXED]
