"""Values that packages exchange, and the Protocols that classifiers, transports and stores implement.

The package knows records, batches of messages, scores, frozen states, snapshots and offsets as plain values,
and what a classifier, a source, a sink, transactions, a snapshot store and a clock must do. It imports only
`streamnb.errors`, because it must not know how anything is decoded, counted, stored, sent or scored.
"""

from streamnb.base import twins
from streamnb.base.batch import (
    NUMBER_MAX,
    TIME_MAX_S,
    WEIGHT_MAX,
    WEIGHT_MIN,
    Batch,
    Flag,
    Floats,
    Label,
    Scores,
    checked_labels,
    likeliest,
)
from streamnb.base.digest import Digest, changed, digests, statement
from streamnb.base.frozen import (
    COUNTED_MAX,
    HINT,
    FrozenState,
    Section,
    Sections,
    check_magnitude,
    check_text,
    check_weights,
    counted,
    floats,
    section,
)
from streamnb.base.limits import (
    DECOMPRESSED_BYTES_MAX,
    FETCHED_BYTES_MAX,
    IN_FLIGHT_BYTES_MAX,
    POLL_BYTES_MAX,
)
from streamnb.base.offsets import Account, Accounts, check_accounts, from_rows, positions, to_rows
from streamnb.base.protocols import Classifier, Clock, Sink, SnapshotStore, Source, Start, Transactions
from streamnb.base.record import (
    HEADER_BYTES,
    Headers,
    Partition,
    RecordBatch,
    Unreadable,
    checked_partitions,
    record_bytes,
)
from streamnb.base.score_rows import ScoreRows
from streamnb.base.secrets import Secret, is_secret
from streamnb.base.snapshot import INDEX_SECTIONS, Snapshot, check_unicode, differences, fingerprint

__all__ = [
    "COUNTED_MAX",
    "DECOMPRESSED_BYTES_MAX",
    "FETCHED_BYTES_MAX",
    "HEADER_BYTES",
    "HINT",
    "INDEX_SECTIONS",
    "IN_FLIGHT_BYTES_MAX",
    "NUMBER_MAX",
    "POLL_BYTES_MAX",
    "TIME_MAX_S",
    "WEIGHT_MAX",
    "WEIGHT_MIN",
    "Account",
    "Accounts",
    "Batch",
    "Classifier",
    "Clock",
    "Digest",
    "Flag",
    "Floats",
    "FrozenState",
    "Headers",
    "Label",
    "Partition",
    "RecordBatch",
    "ScoreRows",
    "Scores",
    "Secret",
    "Section",
    "Sections",
    "Sink",
    "Snapshot",
    "SnapshotStore",
    "Source",
    "Start",
    "Transactions",
    "Unreadable",
    "changed",
    "check_accounts",
    "check_magnitude",
    "check_text",
    "check_unicode",
    "check_weights",
    "checked_labels",
    "checked_partitions",
    "counted",
    "differences",
    "digests",
    "fingerprint",
    "floats",
    "from_rows",
    "is_secret",
    "likeliest",
    "positions",
    "record_bytes",
    "section",
    "statement",
    "to_rows",
    "twins",
]
