"""Tests of the query API and its server."""
