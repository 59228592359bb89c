"""Exports of a log, and imports."""
