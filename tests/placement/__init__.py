"""Placement: recorded decisions, invariants, the parts on their own."""
