"""The scale-out log: the same topics on Apache Kafka, for any number of processes.

``partition_followers`` is the log of workers and members: only the partitions that they need, with the newest records
in memory. ``numbered_log`` is the log of API replicas and views: all partitions, in the order that the topic
``sequence`` records. ``shard_ownership`` writes the steps of shards, each in a transaction of the shard's producer. In
the engine only this package uses aiokafka, the client library.
"""
