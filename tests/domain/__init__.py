"""Tests of what deciders and views share."""
