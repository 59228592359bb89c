"""Placement: recorded decisions, invariants, and the single parts."""
