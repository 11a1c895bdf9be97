"""Bytes to messages and scores to bytes: what other programs send and read.

It knows JSON, the fields of a message, why a record is refused, and the form of a score (`schemas/` holds
both as JSON Schemas). It must not know which model scores, where records come from, or what becomes of a
refused one.
"""

from streamnb.wire.abstention import REASONS
from streamnb.wire.message import Decoder, MessageFields, Messages
from streamnb.wire.score import Output, encode_scores

__all__ = ["REASONS", "Decoder", "MessageFields", "Messages", "Output", "encode_scores"]
