"""Deciders: what follows from a state and what happened to it."""
