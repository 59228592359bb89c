"""Tests of what is read of objects."""
