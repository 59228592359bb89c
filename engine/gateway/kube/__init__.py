"""The Kubernetes API over HTTP: what ``engine.kube`` knows of objects, on the door and the views."""
