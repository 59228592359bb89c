"""Taints: evictions and their times, graceful purge, and no automatic return."""
