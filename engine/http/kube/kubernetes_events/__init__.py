"""Kubernetes Events, derived from the log on request: of bindings and templates, of Works, and of clusters."""
