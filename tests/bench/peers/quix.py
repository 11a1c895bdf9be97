"""The job of a peer as a Quix Streams application: ``python quix.py ADDRESS INPUT OUTPUT MESSAGES``.

It runs in the peers' own environment; see `tests/bench/peer_pipelines.py`.
"""

from __future__ import annotations

import sys
import time
from typing import Any


def main() -> None:
    """Score each message before its label is learned, and publish the score.

    It prints the processor time from the first message on, in seconds.
    """
    from quixstreams import Application
    from river import compose, feature_extraction, naive_bayes

    address, source, sink, messages = sys.argv[1:]
    model = compose.Pipeline(feature_extraction.BagOfWords(), naive_bayes.MultinomialNB())  # type: ignore[no-untyped-call]

    began_s: list[float] = []

    def score(message: dict[str, Any]) -> dict[str, object]:
        if not began_s:
            began_s.append(time.process_time())
        posterior = model.predict_proba_one(message["text"])
        model.learn_one(message["text"], message["label"])
        return {"id": message.get("id"), "posterior": posterior}

    application = Application(
        broker_address=address,
        consumer_group=f"{source}-quix-{sink}",
        auto_offset_reset="earliest",
        auto_create_topics=False,
        loglevel="WARNING",
    )
    scored = application.dataframe(application.topic(source, value_deserializer="json")).apply(score)
    scored.to_topic(application.topic(sink, value_serializer="json"))
    application.run(count=int(messages))
    print(time.process_time() - began_s[0])


if __name__ == "__main__":
    main()
