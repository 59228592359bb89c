"""Types of the API as text tables, from the published API of Kubernetes."""
