"""The engine and its members in virtual time, under random edits, taints, faults and crashes.

A seed gives a run, always the same one. ``python -m tests.simulation SEED`` plays one again and tells its moves.
"""
