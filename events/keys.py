"""Keys of records and names of bindings.

A key decides the partition, and so which shard decides. The name of a binding follows the reference's rule:
``<name>-<kind in lower case>``, with ``:`` turned into ``.``.
"""

from events import partitioning, topics

_REBALANCER_PREFIX = "workloadrebalancer:"
_ROOM_PREFIX = "room:"
_PRIORITY_CLASS_SUFFIX = "-priorityclass"


def binding_name(kind: str, name: str) -> str:
    """The name of the binding of a template."""
    return f"{name.replace(':', '.')}-{kind.lower()}"


def binding_key(kind: str, namespace: str, name: str) -> str:
    """The key of a template and its binding: ``namespace/name-kind``, or ``name-kind`` without a namespace."""
    bound = binding_name(kind, name)
    return f"{namespace}/{bound}" if namespace else bound


def split(key: str) -> tuple[str, str]:
    """Namespace and name of the binding with this key; no namespace for one that is cluster-scoped."""
    namespace, _, name = key.rpartition("/")
    return namespace, name


def rebalancer_key(name: str) -> str:
    """The key of a WorkloadRebalancer; the colon keeps it apart from every binding key."""
    return _REBALANCER_PREFIX + name


def is_rebalancer(key: str) -> bool:
    """Whether the key is one of a rebalancer."""
    return key.startswith(_REBALANCER_PREFIX)


def object_key(kind: str, namespace: str, name: str) -> str:
    """The key of an object that every shard reads (policies, namespaces, interpreters)."""
    return f"{kind.lower()}:{namespace}/{name}" if namespace else f"{kind.lower()}:{name}"


def priority_class_of(key: str) -> str:
    """The name of the PriorityClass whose template has this key; empty for another key."""
    return (
        "" if "/" in key or not key.endswith(_PRIORITY_CLASS_SUFFIX) else key[: -len(_PRIORITY_CLASS_SUFFIX)]
    )


def room_key(shard: int) -> str:
    """The key under which a shard is asked for room, which falls on that shard; empty for a shard that there is not."""
    return _ROOM_KEYS.get(shard, "")


def cluster_key(name: str) -> str:
    """The key of a cluster among all keys: its own name, which decides its shard, might be that of a binding."""
    return object_key("Cluster", "", name)


def shard_of(key: str) -> int:
    """The home shard of a key."""
    return partitioning.partition_of(key, topics.SHARDS)


def _room_keys() -> dict[int, str]:
    """For each shard the first of the keys ``room:0``, ``room:1`` and so on that falls on it."""
    found: dict[int, str] = {}
    number = 0
    while len(found) < topics.SHARDS:
        key = f"{_ROOM_PREFIX}{number}"
        found.setdefault(shard_of(key), key)
        number += 1
    return found


_ROOM_KEYS = _room_keys()
