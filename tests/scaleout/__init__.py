"""Workers and API replicas on real Kafka as processes that are killed, frozen and disconnected under load."""
