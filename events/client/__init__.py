"""Kafka client for other systems that append events to the log of a Reballast."""
