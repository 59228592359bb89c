"""Conversion between the stored and the served form of a kind, and the scale subresource."""
