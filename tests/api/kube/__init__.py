"""The Kubernetes API without kubectl: accepted requests, and refusals as in Kubernetes."""
