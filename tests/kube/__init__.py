"""Tests of the Kubernetes API without I/O: schemas, validation, patches, tables, discovery."""
