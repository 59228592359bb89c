"""Karmada's kinds in the write API: defaults and rules of its webhooks."""
