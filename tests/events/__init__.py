"""The events package by itself: bytes to events and back, verdicts, schemas."""
