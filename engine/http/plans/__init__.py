"""Plans over HTTP: the effect of requests to the Kubernetes API, predicted before they are made."""
