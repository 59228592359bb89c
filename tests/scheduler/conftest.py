"""A real cluster stands in for Karmada's API server."""

from tests.agent.conftest import cluster

__all__ = ["cluster"]
