"""The engine and its members in virtual time, under random edits, taints, storms, faults and crashes.

A seed gives a run, always the same one. ``python -m tests.simulation edits SEED`` plays one again and tells its moves.
"""
