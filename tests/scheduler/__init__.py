"""Tests of the scheduler of an existing Karmada."""
