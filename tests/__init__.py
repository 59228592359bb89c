"""Tests, sorted by concern; each reads as an example of what holds."""
