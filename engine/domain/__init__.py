"""Bindings, clusters and rebalancers, and how events change them: one fold for deciders and projections."""
