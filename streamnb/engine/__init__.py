"""The loop: poll, decode, score, learn, publish, snapshot, commit; and what happens when a step fails.

Besides `errors` it imports three packages: `base` (Protocols), `wire` (decoder, score encoder) and
`evaluation` (running figures of accuracy). Its model, transports and snapshot store are passed to it: it
must not know `naive_bayes`, `storage`, `transports`, `config` or `cli`.

`Engine.run` is the loop. `Recovery` prepares it, `Processing` handles its batches, `Snapshots` decides when
a snapshot is due and `SnapshotWriter` writes it in a thread, and `Delivery` publishes; they share one
`Model` and one `Progress`. `supervise` runs an engine in a process that stops on signals.
"""

from streamnb.engine.clock import SystemClock
from streamnb.engine.dead_letters import DeadLetterLimits, DeadLetters
from streamnb.engine.delivery import Delivery
from streamnb.engine.engine import Engine
from streamnb.engine.guard import Guard, GuardSettings
from streamnb.engine.lag import Lag
from streamnb.engine.metrics import Metrics, MetricsSettings
from streamnb.engine.model import Model
from streamnb.engine.preconditions import check_statistics, starting_point
from streamnb.engine.processing import Processing
from streamnb.engine.progress import Progress
from streamnb.engine.published_scores import BEGUN, MERGED
from streamnb.engine.recovery import Recovery
from streamnb.engine.settings import EngineSettings, Pace, SnapshotSettings, Summary
from streamnb.engine.signals import StopOnSignals
from streamnb.engine.snapshot_writer import SnapshotWriter
from streamnb.engine.snapshots import Snapshots
from streamnb.engine.supervision import supervise

__all__ = [
    "BEGUN",
    "MERGED",
    "DeadLetterLimits",
    "DeadLetters",
    "Delivery",
    "Engine",
    "EngineSettings",
    "Guard",
    "GuardSettings",
    "Lag",
    "Metrics",
    "MetricsSettings",
    "Model",
    "Pace",
    "Processing",
    "Progress",
    "Recovery",
    "SnapshotSettings",
    "SnapshotWriter",
    "Snapshots",
    "StopOnSignals",
    "Summary",
    "SystemClock",
    "check_statistics",
    "starting_point",
    "supervise",
]
