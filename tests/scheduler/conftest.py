"""The fixture ``cluster``: its kube-apiserver serves Karmada's kinds in test_real."""

from tests.agent.conftest import cluster

__all__ = ["cluster"]
