"""Builders of manifests and of the input events made of them, shared by all tests."""
