"""The engine and its members in virtual time, under random edits, taints, storms, faults and crashes.

A seed determines the run. ``python -m tests.simulation edits SEED`` repeats one and prints its moves.
"""
