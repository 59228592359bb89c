"""Verdicts on inputs in their partition: taken, late, repeated, misplaced or refused."""
