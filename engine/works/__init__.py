"""Works: the content for one cluster: a template with its replicas, labels and override policies."""
