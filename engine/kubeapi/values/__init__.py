"""Values of the Kubernetes API: quantities, selectors, durations, texts of Secrets, Go's notation."""
