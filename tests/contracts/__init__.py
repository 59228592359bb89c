"""Contracts of ports: one suite per port, inherited for each implementation."""
