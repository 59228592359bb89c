"""Kubernetes Events: those derived from the log on request, and those that clients write."""
