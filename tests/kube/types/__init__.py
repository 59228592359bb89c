"""The generator of the type table of Kubernetes' own kinds (``python -m tests.kube.types``)."""
