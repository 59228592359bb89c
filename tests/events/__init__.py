"""The events package without a log: codec, verdicts, schemas, producers."""
