"""Deciders: pure functions from a shard's state and its inputs to decisions.

They use no clock, randomness, network or log; times and ids are data in the inputs. ``folds`` is the entry
point for a shard's owner, for recovery and for verification.
"""
