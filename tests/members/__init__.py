"""Simulated members: the pure core by behaviour, the shell on a log, restarts, faults, room."""
