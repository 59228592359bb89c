"""Stories of invalid objects of built-in kinds, and of forbidden changes."""
