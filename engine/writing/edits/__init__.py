"""Edits of objects (create, replace, patch and apply) and of their subresources status and scale, as values."""
