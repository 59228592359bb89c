"""Rendering of the projections as Kubernetes objects."""
