"""Deciders: pure functions from a shard's state and its inputs to decisions.

They use no clock, randomness, network or log; times and ids are data in the inputs. ``shard_fold`` is the entry
point for a shard's owner, for recovery and for verification.

An input *touches* keys (of bindings, rebalancers, clusters), which then wait to be decided. A *step* is one turn of
the shard: it folds new inputs, fires due timers, decides waiting keys and emits decisions, links and works. *Facts*
are inputs that every shard reads.
"""
