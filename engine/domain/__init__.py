"""Bindings and clusters, and how events change them: one fold for deciders and projections."""
