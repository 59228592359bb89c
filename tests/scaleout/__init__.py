"""Workers and replicas on real Kafka, as processes that are killed, frozen and cut off under load."""
