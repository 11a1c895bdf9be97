"""How many bytes of records the transports hold at once; `streamnb.config.buffer_bytes_max` adds them up."""

POLL_BYTES_MAX = 8 << 20
"""The bytes of records after which a poll ends, by `record_bytes`. The record that reaches the limit is the
poll's last one, so that a record of any size is read."""

FETCHED_BYTES_MAX = 8 << 20
"""How many bytes of records a client fetches ahead of the polls, as they were sent: compressed ones count
compressed. One record batch of each broker may exceed it, so that a batch of any size is read."""

DECOMPRESSED_BYTES_MAX = 32 << 20
"""The largest record batch that is decompressed. A hostile batch of 1 MB can decompress to 1 GB; honest ones
stay far below this limit."""

IN_FLIGHT_BYTES_MAX = 8 << 20
"""How many bytes of values and keys a sink sends before the brokers answer, unless its settings give another
limit."""
