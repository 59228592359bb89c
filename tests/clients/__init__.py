"""A client of the Kubernetes API that none of us wrote, and a server that comes and goes."""
