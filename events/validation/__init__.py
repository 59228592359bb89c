"""Verdicts on inputs: sizes, forms and rules, the same in the write API, every fold and the producer."""
