"""Kubernetes Events, derived from the log on request: of bindings and templates, Works, clusters and quotas."""
