"""A real Kubernetes for the tests, as local processes: etcd, API server, controllers, scheduler; kwok plays nodes."""
