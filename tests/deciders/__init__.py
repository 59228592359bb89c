"""Tests of the deciders, as stories on the real worker and an in-memory log."""
