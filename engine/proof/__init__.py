"""Proofs of a log: every step computed again, signed checkpoints of its history, and an audit with other rules."""
