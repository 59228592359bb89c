"""Keys of records, their partitions, and names of bindings.

The key determines the partition and so the shard that decides. A binding is named by Karmada's rule,
``<name>-<kind in lower case>``, with ``:`` replaced by ``.``.

The partition is that of the default partitioner of Kafka's Java client, Austin Appleby's MurmurHash2 with Kafka's
seed, so producers in any language reach it with their client's murmur2 partitioner. The fold refuses a record in
another partition.
"""

from functools import lru_cache
from struct import unpack_from

from events import topics

_REBALANCER_PREFIX = "workloadrebalancer:"
_CAPACITY_PREFIX = "room:"
_QUOTA_PREFIX = "overallquota:"
_GROUP_PREFIX = "workloadgroup:"
_PRIORITY_CLASS_SUFFIX = "-priorityclass"

_SEED = 0x9747B28C
_MIX = 0x5BD1E995
_MASK = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF
_CACHED_KEYS_MAX = 4_096


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


def binding_name(kind: str, name: str) -> str:
    return f"{name.replace(':', '.')}-{kind.lower()}"


def binding_key(kind: str, namespace: str, name: str) -> str:
    """Return the key of a template and its binding: ``namespace/name-kind``, or ``name-kind`` without a namespace."""
    bound = binding_name(kind, name)
    return f"{namespace}/{bound}" if namespace else bound


def full_name(namespace: str, name: str) -> str:
    """Return ``namespace/name``, or the name of an object without namespace."""
    return "/".join(filter(None, (namespace, name)))


def group_of(api_version: str) -> str:
    """Return the API group of an apiVersion; empty for the core group."""
    return api_version.rpartition("/")[0]


def resource_name(api_version: str, kind: str) -> str:
    """Return a kind as kubectl prints it: ``deployment.apps``, ``configmap``."""
    return ".".join(filter(None, (kind.lower(), group_of(api_version))))


def split(key: str) -> tuple[str, str]:
    """Return the namespace and name in a binding key; the namespace is empty for cluster-scoped bindings."""
    namespace, _, name = key.rpartition("/")
    return namespace, name


def namespace_of(key: str) -> str:
    """Return the namespace in a key of any type (object, quotas or group); empty if it has none."""
    if key.startswith(_QUOTA_PREFIX):
        return key.removeprefix(_QUOTA_PREFIX)
    # Take the first separator: the key of a group may have further slashes and colons after its namespace.
    head, slash, _ = key.partition("/")
    return head.rpartition(":")[2] if slash else ""


def rebalancer_key(name: str) -> str:
    """Return the key of a WorkloadRebalancer; its colon distinguishes it from every binding key."""
    return _REBALANCER_PREFIX + name


def object_key(kind: str, namespace: str, name: str) -> str:
    """Return the key of an object that every shard reads (policies, namespaces, interpreters)."""
    return f"{kind.lower()}:{namespace}/{name}" if namespace else f"{kind.lower()}:{name}"


def priority_class_of(key: str) -> str:
    """Return the PriorityClass's name if the key is that of its template; empty for other keys."""
    return (
        "" if "/" in key or not key.endswith(_PRIORITY_CLASS_SUFFIX) else key[: -len(_PRIORITY_CLASS_SUFFIX)]
    )


def capacity_key(shard: int) -> str:
    """Return the key of capacity requests to a shard; empty if the shard does not exist.

    The key hashes to that shard.
    """
    return _CAPACITY_KEYS.get(shard, "")


def quota_key(namespace: str) -> str:
    """Return the key of a namespace's overall quotas; its owner shard decides on the bindings' claims."""
    return _QUOTA_PREFIX + namespace


def group_key(namespace: str, label: str, value: str, *, apart: bool) -> str:
    """Return the key of the group of workloads with this label value in a namespace, kept together or ``apart``."""
    return f"{_GROUP_PREFIX}{namespace}/{'apart' if apart else 'together'}/{label}={value}"


def cluster_key(name: str) -> str:
    """Return a Cluster object's key, which is unique among the keys of all objects.

    The cluster's records have its bare name as key. The bare name determines the owner shard, but it may equal the key
    of a binding.
    """
    return object_key("Cluster", "", name)


def shard_of(key: str) -> int:
    """Return the owner shard of a key."""
    return partition_of(key, topics.SHARDS)


def _capacity_keys() -> dict[int, str]:
    """Return, for each shard, the first of the keys ``room:0``, ``room:1``, … that hashes to it."""
    result: dict[int, str] = {}
    number = 0
    while len(result) < topics.SHARDS:
        key = f"{_CAPACITY_PREFIX}{number}"
        result.setdefault(shard_of(key), key)
        number += 1
    return result


_CAPACITY_KEYS = _capacity_keys()
