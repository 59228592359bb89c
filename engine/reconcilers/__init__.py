"""Async layer around the pure deciders: read inputs, let the deciders take steps, commit the outputs of the steps."""
