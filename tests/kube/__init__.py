"""The pure half of the Kubernetes API."""
