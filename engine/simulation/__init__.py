"""Simulated member clusters: they take works from the log, run replicas and report the results."""
