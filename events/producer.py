"""Public import path of the Kafka producer for other systems; see ``events.client.producer``."""

from events.client.producer import OutcomeUnknownError, Producer, ProducerError

__all__ = ["OutcomeUnknownError", "Producer", "ProducerError"]
