"""Sources and sinks, one a world: memory, JSON lines, Kafka, and a broker embedded for the demo."""
