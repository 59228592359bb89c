"""Agents: what the log says a cluster must run reaches that cluster's own Kubernetes API, and its answer comes back."""
