"""The Kubernetes API over HTTP: connects the pure rules of ``engine.kubeapi`` with the write API and the views."""
