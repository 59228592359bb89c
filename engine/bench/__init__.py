"""Benchmarks; each measures a baseline in the same run."""
