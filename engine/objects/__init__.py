"""Structs and parsers of Kubernetes objects on which decisions depend: quantities, selectors, clusters, policies.

Pure: no clock, file or network, and no imports from other packages of the project.
"""
