"""Reads TOML into typed settings and builds the model, transports and engine from them.

Most settings tables are classes in the package that reads them; those of the model and of the endpoints are
here. `Settings` collects them all. The package must not know the command line.

- `settings`: TOML to typed settings; `renamed` refuses old names, `known` has hints for wrong ones, and
  `endpoints` has the tables of transports.
- `models`: builds a model and a decoder from settings, or restores both from a snapshot; `growing`: gives a
  snapshot the views of other settings.
- `engines`: settings to transports, a snapshot directory and an engine; `checks`: what `streamnb check`
  does, with `newest` for the records; `buffers`: how much memory an engine may take.
"""

from streamnb.config.buffers import buffer_bytes_max
from streamnb.config.checks import checks
from streamnb.config.endpoints import (
    ConfluentInput,
    ConfluentOutput,
    InputSettings,
    KafkaInput,
    KafkaOutput,
    LinesInput,
    LinesOutput,
    OutputSettings,
)
from streamnb.config.engines import (
    build_drift_watch,
    build_engine,
    build_guard,
    build_sink,
    build_source,
    build_transactions,
    check_endpoints,
    check_lines,
)
from streamnb.config.growing import grown
from streamnb.config.models import (
    build_decoder,
    build_model,
    load_snapshot,
    model_description,
    restore_model,
    snapshot_of,
    verify_snapshot,
)
from streamnb.config.renamed import without_fixed
from streamnb.config.settings import Settings, client_settings, decode_settings, load_settings

__all__ = [
    "ConfluentInput",
    "ConfluentOutput",
    "InputSettings",
    "KafkaInput",
    "KafkaOutput",
    "LinesInput",
    "LinesOutput",
    "OutputSettings",
    "Settings",
    "buffer_bytes_max",
    "build_decoder",
    "build_drift_watch",
    "build_engine",
    "build_guard",
    "build_model",
    "build_sink",
    "build_source",
    "build_transactions",
    "check_endpoints",
    "check_lines",
    "checks",
    "client_settings",
    "decode_settings",
    "grown",
    "load_settings",
    "load_snapshot",
    "model_description",
    "restore_model",
    "snapshot_of",
    "verify_snapshot",
    "without_fixed",
]
