"""Override policies: which ones apply to a template in a cluster, and the manifest that results."""
