"""Agents: the pure core, and whole ones as processes against Kubernetes APIs."""
