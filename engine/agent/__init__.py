"""Agents of real clusters: they apply a cluster's works to its own Kubernetes API and report the results."""
