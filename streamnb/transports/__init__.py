"""Transports read records from a log and write records to one, behind the protocols `Source` and `Sink`.

There is one module or subpackage per kind of log: `memory` (tests and examples), `jsonl` (files), `kafka`
(kafka-python), `confluent` (librdkafka) and `embedded` (a Kafka broker inside the process, for the demo).
Import the one you need by its name: then the client libraries of the others need not be installed. A
transport knows its client library and the offsets of its log. It must not know what a record contains or
which part of streamnb reads it.

To register a new one, add its settings to `InputSettings` and `OutputSettings` in config/endpoints.py,
build it in `build_source` and `build_sink` of config/engines.py, and add its name to `TRANSPORTS` in
tests/laws/test_architecture.py.
"""
