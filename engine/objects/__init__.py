"""Kubernetes-shaped values that the engine decides about: quantities, selectors, clusters, placements.

Pure: nothing here reads a clock, a file or the network, and nothing of ours is imported from outside.
"""
