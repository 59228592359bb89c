"""Wiring of processes: the parts of an installation, embedded or on Kafka, and their start and stop."""
