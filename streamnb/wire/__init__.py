"""The formats that other programs send and read: records decoded to messages, scores encoded to JSON.

`message` decodes records: `fields` reads the values at the paths of a message's parts, `field_values` checks
a single value, and `json_faults` names what is wrong with a record. `score` encodes scores: `abstention`
withholds predictions, `top_classes` chooses the classes that a score lists, `cut` shortens a score that is
too large, and `template` writes the rows of a batch. `_fields` and `_template` are the compiled twins of
`fields` and `template`, used if they were built.

It knows JSON, the fields of a message, why a record is refused, and the form of a score (`schemas/` has a
JSON Schema of the message and one of the score). The package must not know which model scores, where
records come from, or what happens to a refused record.
"""

from streamnb.wire.abstention import REASONS
from streamnb.wire.cut import cut, too_large
from streamnb.wire.message import PARSED_BYTES, Decoder, MessageFields, Messages
from streamnb.wire.score import Output, encode_scores

__all__ = [
    "PARSED_BYTES",
    "REASONS",
    "Decoder",
    "MessageFields",
    "Messages",
    "Output",
    "cut",
    "encode_scores",
    "too_large",
]
