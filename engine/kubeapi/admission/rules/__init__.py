"""Validation of Kubernetes' own kinds, with its messages to the letter."""
