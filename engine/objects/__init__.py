"""Structs and parsers of Kubernetes objects on which decisions depend: clusters, policies, placements, workloads.

Pure: no clock, file or network. Imports only ``events`` and ``engine.kubeapi.values`` from the project.
"""
