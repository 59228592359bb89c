"""HTTP servers: the Kubernetes API, the query API, web pages and the agents' API."""
