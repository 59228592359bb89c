"""Web pages about bindings, clusters and rebalancers."""
