"""HTTP servers of the engine: the query API, the HTML pages and the Kubernetes API."""
