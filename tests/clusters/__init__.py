"""A real Kubernetes as local processes: etcd, API server, controllers, scheduler; kwok simulates nodes."""
