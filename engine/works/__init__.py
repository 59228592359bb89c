"""Content of works. A work has a template for one cluster, with its replicas, labels and override policies."""
