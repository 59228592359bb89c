"""Style as tests: what a linter has no rule for. Limits here may be lowered, never raised."""
