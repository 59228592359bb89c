"""Identity of a server and its clients: certificates, tokens, shared keys, kubeconfig and endpoint file."""
