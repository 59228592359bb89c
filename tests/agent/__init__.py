"""Tests of the agent: its pure core, and whole agents as processes against Kubernetes APIs."""
