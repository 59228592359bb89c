"""RBAC: roles, bindings, decisions, and service account tokens."""
