"""Content of works: for one cluster each, a template with its replicas, labels and override policies."""
