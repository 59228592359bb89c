"""Tests of the command line, with a running server where one is needed."""
