"""One event of each type, with a value in every field."""
