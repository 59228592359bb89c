"""Values of the Kubernetes API: quantities, selectors, durations, Go's notation."""
