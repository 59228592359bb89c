"""Validation of the fields of events about clusters, PriorityClasses and links, beyond their types.

Every fold validates them for its verdicts, because the engine computes with these names, taints and quantities, and
any producer may have written them. Names in a link become keys of works and fields of bindings.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

import msgspec

from events import clusters, keys, kube_objects, limits, links, policies, shapes
from events.limits import quoted, shortened
from events.validation import kind_schemas, names
from events.validation.schema import Fault, Form, faults, refuse_first

_BOUND: Final = re.compile(r"[a-zA-Z0-9]([-a-zA-Z0-9_.]*[a-zA-Z0-9])?")

PRIORITY_MIN: Final = -(2**31)
PRIORITY_MAX: Final = 2**31 - 1
"""Priorities are 32-bit signed integers, as in Kubernetes."""

_STATUSES: Final = ("True", "False", "Unknown")


def check_cluster_event(data: shapes.Event) -> None:
    """Raise ``kube_objects.Refusal`` for the first fault of a cluster event; other events pass."""
    refuse_first(cluster_event_faults(data))


def cluster_event_faults(data: shapes.Event) -> Iterator[Fault]:
    """Yield all faults of a cluster event, each with the path of its field."""
    match data:
        case clusters.ClusterJoined():
            if not names.is_dns_name(data.name):
                yield Fault(
                    "name", f"{quoted(data.name)} is no DNS name", "use lower case letters, digits, '-', '.'"
                )
            yield from names.label_faults(data.labels, "labels")
            yield from _fields(data)
        case clusters.ClusterLabelled(labels=labels):
            yield from names.label_faults(labels, "labels")
        case clusters.ClusterDescribed() | clusters.ClusterTainted():
            yield from _fields(data)
        case clusters.CapacityReported():
            yield from _quantities(data.allocatable, "allocatable")
            yield from _quantities(data.allocated, "allocated")
            yield from _quantities(data.allocating, "allocating")
            for index, quota in enumerate(data.quotas):
                yield from _quantities(quota.free, f"quotas[{index}].free")
        case clusters.ClusterConditionsReported(conditions=conditions):
            yield from _conditions(conditions)
        case clusters.MemberObjectApplied(manifest=manifest):
            kube_objects.read_head(manifest)
            kube_objects.spec_digest(manifest)
        case _:
            return


def _fields(data: shapes.Event) -> Iterator[Fault]:
    """Yield the faults of the fields that the event shares with the spec of a Cluster object."""
    # Encode and decode once, because the forms expect JSON lists, not tuples.
    written = msgspec.json.decode(msgspec.json.encode(data), type=dict[str, object])
    for name, form in _forms().items():
        if name in written:
            yield from faults(form, written[name], name)


@cache
def _forms() -> Mapping[str, Form]:
    """Return the forms of cluster events' fields, by name; the schemas are read at the first call, not at import."""
    return {
        **kind_schemas.form("cluster.karmada.ClusterSpec").known,
        "taint": kind_schemas.form("core.Taint"),
    }


def _conditions(conditions: tuple[clusters.ClusterCondition, ...]) -> Iterator[Fault]:
    types: set[str] = set()
    for index, condition in enumerate(conditions):
        path = f"conditions[{index}]"
        if not condition.type or condition.type in clusters.DERIVED_CONDITIONS or condition.type in types:
            reason = f"{quoted(condition.type)} is empty, repeated or derived by the engine"
            yield Fault(f"{path}.type", reason, "give each condition a type of its own")
        if condition.status not in _STATUSES:
            yield Fault(f"{path}.status", f"{quoted(condition.status)} is not True, False or Unknown")
        types.add(condition.type)


def _quantities(amounts: Mapping[str, str], path: str) -> Iterator[Fault]:
    for resource, amount in amounts.items():
        if not names.is_quantity(amount):
            yield Fault(f"{path}.{shortened(resource)}", f"{quoted(amount)} is not {names.QUANTITY.means}")


def check_priority_class(data: shapes.Event) -> None:
    """Raise ``kube_objects.Refusal`` for the first fault of a PriorityClass event; other types of events pass."""
    match data:
        case policies.PriorityClassDeclared(name=name, value=value):
            _check_class_name(name)
            if not PRIORITY_MIN <= value <= PRIORITY_MAX:
                raise kube_objects.Refusal("value", f"{value} is no whole number of 32 bits")
        case policies.PriorityClassGone(name=name):
            _check_class_name(name)
        case _:
            return


def _check_class_name(name: str) -> None:
    if not names.is_dns_name(name):
        raise kube_objects.Refusal("name", f"{quoted(name)} is no name of a PriorityClass")


def check_link(data: shapes.Event) -> None:
    """Raise ``kube_objects.Refusal`` for the first fault of a link; other types of events pass."""
    match data:
        case links.DependencyNeeded(dependency=ref, by=by, clusters=clusters):
            _check_need(ref, by)
            check_clusters(clusters, "clusters")
        case links.DependencyDropped(dependency=ref, by=by):
            _check_need(ref, by)
        case links.CapacityRequested(key=key, clusters=clusters):
            _check_key(key, "key")
            check_clusters(clusters, "clusters")
        case links.CapacityOffered(key=key, occupants=occupants):
            _check_key(key, "key")
            for occupant in occupants:
                _check_key(occupant.key, "occupants.key")
                check_clusters((occupant.cluster,), "occupants.cluster")
                refuse_first(_quantities(occupant.requests, "occupants.requests"))
        case links.PreemptionRequested(key=key, cluster=cluster, by=by):
            _check_key(key, "key")
            _check_key(by, "by")
            check_clusters((cluster,), "cluster")
        case links.ClusterCleared(cluster=cluster):
            check_clusters((cluster,), "cluster")
        case _:
            _check_share(data)


def _check_share(data: shapes.Event) -> None:
    match data:
        case links.QuotaRequested(namespace=namespace, key=key):
            _check_key(key, "key")
            if not namespace or keys.split(key)[0] != namespace:
                raise kube_objects.Refusal("key", "names no binding of the namespace")
        case links.QuotaAnswered(key=key):
            _check_key(key, "key")
        case links.GroupRequested(key=key, placed=placed, wanted=wanted_clusters):
            _check_key(key, "key")
            check_clusters(placed, "placed")
            check_clusters(wanted_clusters, "wanted")
        case links.GroupAnswered(key=key, others=others):
            _check_key(key, "key")
            check_clusters(others, "others")
        case _:
            return


def check_clusters(clusters: tuple[str, ...], field: str) -> None:
    """Raise ``kube_objects.Refusal`` for the first text that cannot be a cluster's name."""
    for name in clusters:
        if not names.is_dns_name(name):
            raise kube_objects.Refusal(field, f"{quoted(name)} is no name of a cluster")


def _check_key(key: str, field: str) -> None:
    namespace, name = keys.split(key)
    form = names.NAMESPACE.pattern
    is_sound = form is not None and form.fullmatch(namespace) and _BOUND.fullmatch(name)
    if not is_sound or len(key) > limits.KEY_BYTES_MAX:
        raise kube_objects.Refusal(field, f"{quoted(key)} is no key of a binding")


def _check_need(ref: shapes.WorkloadRef, by: str) -> None:
    for field, form, text in (
        ("apiVersion", names.API_VERSION, ref.api_version),
        ("kind", names.KIND, ref.kind),
        ("name", names.OBJECT, ref.name),
        ("namespace", names.NAMESPACE, ref.namespace),
    ):
        if form.pattern and not form.pattern.fullmatch(text):
            raise kube_objects.Refusal(f"dependency.{field}", f"{quoted(text)} is not {form.means}")
    namespace, name = keys.split(by)
    if not namespace or namespace != ref.namespace:
        raise kube_objects.Refusal("by", "names no binding of the object's own namespace")
    if len(by) > limits.KEY_BYTES_MAX or not _BOUND.fullmatch(name):
        raise kube_objects.Refusal("by", f"{quoted(by)} is no key of a binding")
