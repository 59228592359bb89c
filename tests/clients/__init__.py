"""A third-party client of the Kubernetes API, over server restarts."""
