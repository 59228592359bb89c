"""Pure parts of the Kubernetes API: kinds, schemas, patches, server-side apply, protobuf, tables, status errors.

No module here reads a clock, a file or the network; callers pass bytes, objects and times as arguments.
"""
