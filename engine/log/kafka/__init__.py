"""The scale-out log: the same topics on Apache Kafka, for any number of processes.

``following`` is the log of workers and members: the partitions that they follow, with the newest records in
memory. ``numbered`` is the log of API replicas and views: all partitions in the order of the ``sequence``.
``owning`` writes the steps of shards, each in a transaction of the shard's own producer. Only this package
uses the client library.
"""
