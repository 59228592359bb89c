"""Tests of manifests: parsing, checks, dependencies and sizes."""
