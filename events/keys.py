"""Keys of records and names of bindings.

The key determines the partition and so the shard that decides. A binding is named by Karmada's rule,
``<name>-<kind in lower case>``, with ``:`` replaced by ``.``.
"""

from events import partitioning, topics

_REBALANCER_PREFIX = "workloadrebalancer:"
_CAPACITY_PREFIX = "room:"
_QUOTA_PREFIX = "overallquota:"
_GROUP_PREFIX = "workloadgroup:"
_PRIORITY_CLASS_SUFFIX = "-priorityclass"


def binding_name(kind: str, name: str) -> str:
    return f"{name.replace(':', '.')}-{kind.lower()}"


def binding_key(kind: str, namespace: str, name: str) -> str:
    """Return the key of a template and its binding: ``namespace/name-kind``, or ``name-kind`` without a namespace."""
    bound = binding_name(kind, name)
    return f"{namespace}/{bound}" if namespace else bound


def full_name(namespace: str, name: str) -> str:
    """Return ``namespace/name``, or the name of an object without namespace."""
    return "/".join(filter(None, (namespace, name)))


def split(key: str) -> tuple[str, str]:
    """Return the namespace and name in a binding key; the namespace is empty for cluster-scoped bindings."""
    namespace, _, name = key.rpartition("/")
    return namespace, name


def rebalancer_key(name: str) -> str:
    """Return the key of a WorkloadRebalancer; its colon distinguishes it from every binding key."""
    return _REBALANCER_PREFIX + name


def object_key(kind: str, namespace: str, name: str) -> str:
    """Return the key of an object that every shard reads (policies, namespaces, interpreters)."""
    return f"{kind.lower()}:{namespace}/{name}" if namespace else f"{kind.lower()}:{name}"


def priority_class_of(key: str) -> str:
    """Return the name of the PriorityClass whose template has this key; empty for other keys."""
    return (
        "" if "/" in key or not key.endswith(_PRIORITY_CLASS_SUFFIX) else key[: -len(_PRIORITY_CLASS_SUFFIX)]
    )


def capacity_key(shard: int) -> str:
    """Return the key of capacity requests to a shard; empty if the shard does not exist.

    The key hashes to that shard.
    """
    return _CAPACITY_KEYS.get(shard, "")


def quota_key(namespace: str) -> str:
    """Return the key under which the overall quotas of a namespace are shared out among its bindings."""
    return _QUOTA_PREFIX + namespace


def group_key(namespace: str, label: str, value: str, *, apart: bool) -> str:
    """Return the key of the workloads of a namespace that a label keeps together, or ``apart``."""
    return f"{_GROUP_PREFIX}{namespace}/{'apart' if apart else 'together'}/{label}={value}"


def cluster_key(name: str) -> str:
    """Return the key of a Cluster object among all objects.

    The key of its records is the bare cluster name, which determines its shard but may equal the key of a
    binding.
    """
    return object_key("Cluster", "", name)


def shard_of(key: str) -> int:
    """Return the owner shard of a key."""
    return partitioning.partition_of(key, topics.SHARDS)


def _capacity_keys() -> dict[int, str]:
    """For each shard, the first of the keys ``room:0``, ``room:1``, … that hashes to it."""
    result: dict[int, str] = {}
    number = 0
    while len(result) < topics.SHARDS:
        key = f"{_CAPACITY_PREFIX}{number}"
        result.setdefault(shard_of(key), key)
        number += 1
    return result


_CAPACITY_KEYS = _capacity_keys()
