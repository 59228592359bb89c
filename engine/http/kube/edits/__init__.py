"""Edits of objects as values: create, replace, patch and apply; also of status and scale."""
