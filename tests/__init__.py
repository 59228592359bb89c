"""Tests, grouped by package or concern; each test is an example of one behaviour."""
