"""Simulated members: the core by behaviour, the shell on a log, restarts, faults, capacity."""
