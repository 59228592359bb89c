"""API for the agents of member clusters: it serves works and manifests, and receives reports."""
