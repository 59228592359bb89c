"""Stories: each one is a few requests about one subject, in its own namespace."""
