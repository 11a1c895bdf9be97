"""Where records come from and where they go: one module or subpackage per world, behind `Source` and `Sink`.

`memory` (tests and examples), `jsonl` (files), `kafka` (kafka-python), `confluent` (librdkafka) and
`embedded` (the demo's broker) are imported by name, so that nobody needs the client of another. They know
their client and the offsets of a log. They must not know what is in a record, nor who asks for it.
"""
