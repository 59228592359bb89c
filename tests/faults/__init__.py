"""Faults of the process and its disk: acknowledged writes are kept, and nothing takes effect twice."""
