"""Edits of objects that requests ask for, as values: created, replaced, patched, applied; status and scale too."""
