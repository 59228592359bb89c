"""Faults of the running process and its disk: what was acknowledged stays, and nothing happens twice."""
