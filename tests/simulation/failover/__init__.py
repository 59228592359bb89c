"""The invariants of failover, checked from the log alone by a model of the clusters and the bindings."""
