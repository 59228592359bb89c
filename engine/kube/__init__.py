"""The pure half of the Kubernetes API: kinds and their schemas, patches, apply, protobuf, tables, errors.

Nothing here reads a clock, a file or the network; whoever serves requests hands in bytes, objects and times.
"""
