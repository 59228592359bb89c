"""Partition of a key, by the default partitioner of Kafka's Java client.

Producers in any language reach the right partition with their client's murmur2 partitioner. The fold refuses
a record in another partition. The algorithm is Austin Appleby's MurmurHash2 with Kafka's seed.
"""

from functools import lru_cache
from struct import unpack_from

_SEED = 0x9747B28C
_MIX = 0x5BD1E995
_MASK = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF
_CACHED_KEYS_MAX = 262_144


def murmur2(data: bytes) -> int:
    """Return the unsigned 32-bit MurmurHash2 of ``data``."""
    length = len(data)
    value = (_SEED ^ length) & _MASK
    whole = length - length % 4
    for word in unpack_from(f"<{length // 4}I", data):
        block = word * _MIX & _MASK
        block = (block ^ block >> 24) * _MIX & _MASK
        value = value * _MIX & _MASK ^ block
    if whole < length:
        value = (value ^ int.from_bytes(data[whole:], "little")) * _MIX & _MASK
    value = (value ^ value >> 13) * _MIX & _MASK
    return value ^ value >> 15


@lru_cache(maxsize=_CACHED_KEYS_MAX)
def partition_of(key: str, partitions: int) -> int:
    """Return the partition, from 0 to ``partitions - 1``, of all records with this key."""
    return (murmur2(key.encode()) & _POSITIVE) % partitions
