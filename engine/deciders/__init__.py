"""What is decided, as pure functions: from a state and what happened to the decisions that follow.

Nothing here knows a clock, chance, a network or a log; time, ids and chance are data. The owner of a shard
drives the deciders through ``folds``, and so do replay and verification.
"""
