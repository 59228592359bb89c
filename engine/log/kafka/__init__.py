"""The scale-out log: the same topics on Apache Kafka, for any number of processes.

``following`` is what workers and members hold: the partitions that they own, newest records in memory. ``numbered`` is
what API replicas and views hold: all partitions in the one order of the ``sequence``. ``owning`` writes the steps of
shards, each in a transaction of the shard's own producer. Only this package knows the client library.
"""
