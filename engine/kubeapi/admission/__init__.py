"""Defaults and validation of objects, with the messages of Kubernetes and Karmada."""
