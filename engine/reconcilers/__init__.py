"""Async shell around the pure deciders: read inputs, take steps, commit their outputs."""
