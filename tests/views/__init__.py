"""The views process, and the verification of its tables."""
