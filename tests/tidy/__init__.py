"""Style rules without a linter rule, as tests. Limits here may be lowered, never raised."""
