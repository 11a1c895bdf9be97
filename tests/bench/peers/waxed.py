"""The job of a peer as a Bytewax dataflow: ``python waxed.py ADDRESS INPUT OUTPUT MESSAGES``.

It runs in the peers' own environment; see `tests/bench/peer_pipelines.py`.
"""

from __future__ import annotations

import sys
import time


def main() -> None:
    """Score each message before its label is learned, and publish the score; end at the topic's end.

    It prints the processor time from the first message on, in seconds.
    """
    import orjson
    from bytewax import operators as op
    from bytewax.connectors.kafka import KafkaSinkMessage, KafkaSourceMessage
    from bytewax.connectors.kafka import operators as kafka
    from bytewax.dataflow import Dataflow
    from bytewax.testing import run_main
    from river import compose, feature_extraction, naive_bayes

    address, source, sink, _ = sys.argv[1:]
    model = compose.Pipeline(feature_extraction.BagOfWords(), naive_bayes.MultinomialNB())  # type: ignore[no-untyped-call]

    began_s: list[float] = []

    def score(record: KafkaSourceMessage) -> KafkaSinkMessage:
        if not began_s:
            began_s.append(time.process_time())
        message = orjson.loads(record.value)
        posterior = model.predict_proba_one(message["text"])
        model.learn_one(message["text"], message["label"])
        return KafkaSinkMessage(None, orjson.dumps({"id": message.get("id"), "posterior": posterior}))

    flow = Dataflow("peer")
    read = kafka.input("read", flow, brokers=[address], topics=[source], tail=False)
    kafka.output("publish", op.map("score", read.oks, score), brokers=[address], topic=sink)
    run_main(flow)
    print(time.process_time() - began_s[0])


if __name__ == "__main__":
    main()
