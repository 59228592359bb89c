"""The scale-out log: the same topics on Apache Kafka, for any number of processes.

``partition_followers`` is the log of workers and members: the partitions that they follow, with the newest records in
memory. ``numbered_log`` is the log of API replicas and views: all partitions in the order of the ``sequence``.
``shard_ownership`` writes the steps of shards, each in a transaction of the shard's own producer. In the engine only
this package uses aiokafka, the client library.
"""
