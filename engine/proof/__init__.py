"""Prove a log by computing its steps again, sign checkpoints of its history, and audit it with changed policies."""
