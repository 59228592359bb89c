"""The log: its interface (``port``) and its backends (SQLite, Kafka, memory)."""
