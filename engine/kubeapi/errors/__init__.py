"""Errors of the Kubernetes API: Status objects, causes, and their messages."""
