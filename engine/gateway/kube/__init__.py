"""The Kubernetes API over HTTP: connects the pure rules of ``engine.kube`` with the write API and the views."""
