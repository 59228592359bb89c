"""Works: what a cluster runs of a template, with its replicas, labels and override policies."""
