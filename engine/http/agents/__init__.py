"""The agents' API: works and manifests for the agents of member clusters, and their reports."""
