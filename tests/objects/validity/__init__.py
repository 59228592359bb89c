"""Validity of known kinds: the documents' objects pass, and each violated rule is reported."""
