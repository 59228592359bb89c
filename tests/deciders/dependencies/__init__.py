"""``propagateDeps``: dependencies follow their workloads, and are removed where no workload needs them."""
