"""The formats that other programs send and read: records decoded to messages, scores encoded to JSON.

It knows JSON, the fields of a message, why a record is refused, and the form of a score (`schemas/` has a
JSON Schema of the message and one of the score). `template` writes the rows of a batch's scores; `_template`
is its compiled twin, used where it was built. The package must not know which model scores, where records
come from, or what happens to a refused record.
"""

from streamnb.wire.abstention import REASONS
from streamnb.wire.cut import cut, too_large
from streamnb.wire.message import Decoder, MessageFields, Messages
from streamnb.wire.score import Output, encode_scores

__all__ = ["REASONS", "Decoder", "MessageFields", "Messages", "Output", "cut", "encode_scores", "too_large"]
