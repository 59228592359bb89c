"""Observing another control plane: recordings played as a Kubernetes API, and shadow decisions."""
