"""Capacity of a member: allocatable resources of its nodes, and requests of its pods. Pure.

Amounts are integers, in billionths of a unit. Nodes that are not ready or not schedulable, the pods on them, and
finished pods are left out. The requests of pods without a node are reported as ``allocating``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from engine.agent import messages
from engine.kubeapi.values import quantity
from engine.objects import workloads
from events import clusters
from events.json_values import Json, as_text
from events.kube_objects import KubeObject

_ENDED: Final = frozenset({"Succeeded", "Failed"})
_canonical: Final = msgspec.json.Encoder().encode


class Node(Struct, frozen=True, gc=False):
    """Allocatable resources of a node, in billionths of a unit."""

    is_ready: bool
    takes_pods: bool
    allocatable: tuple[tuple[str, int], ...]


class Pod(Struct, frozen=True, gc=False):
    """Requests of a pod, in billionths of a unit, and its node; empty while it has none."""

    node: str
    amounts: tuple[tuple[str, int], ...]


def node_of(value: KubeObject) -> Node:
    conditions = value.objects_at("status", "conditions")
    is_ready = any(
        condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions
    )
    is_open = value.at("spec", "unschedulable") is not True
    amounts = value.object_at("status", "allocatable")
    return Node(is_ready, is_ready and is_open, tuple(sorted(_read(amounts).items())))


def pod_of(value: KubeObject) -> Pod | None:
    """Parse a pod; None if it has finished."""
    if value.text_at("status", "phase") in _ENDED:
        return None
    spec = value.object_at("spec")
    template: Json = {"spec": {"template": {"spec": spec}}}
    try:
        # A pod's spec has the same form in every workload kind, so any kind will do here.
        requests = workloads.size("apps/v1", "Deployment", _canonical(template)).requests or ()
    except (msgspec.MsgspecError, quantity.QuantityError):
        requests = ()
    amounts = {
        name: amount for name, amount in _read(dict(requests)).items() if name != quantity.PODS and amount > 0
    }
    return Pod(as_text(spec.get("nodeName")), (*sorted(amounts.items()), (quantity.PODS, quantity.NANO)))


def report(
    nodes: Mapping[str, Node], pods: Iterable[Pod], models: Sequence[clusters.ResourceGrade]
) -> messages.CapacityReport:
    """The member's capacity; ``models`` are the resource grades by which its nodes are counted."""
    counted = {name: node for name, node in nodes.items() if node.takes_pods}
    allocatable: dict[str, int] = {}
    for node in counted.values():
        _add(allocatable, node.allocatable)
    allocated: dict[str, int] = {}
    allocating: dict[str, int] = {}
    taken: dict[str, dict[str, int]] = {}
    for pod in pods:
        if not pod.node:
            _add(allocating, pod.amounts)
        elif pod.node in counted:
            _add(allocated, pod.amounts)
            _add(taken.setdefault(pod.node, {}), pod.amounts)
    return messages.CapacityReport(
        allocatable=quantity.texts(allocatable),
        allocated=quantity.texts(allocated),
        allocating=quantity.texts(allocating),
        modelings=_nodes_per_grade(counted, taken, models),
        nodes=len(nodes),
        nodes_ready=sum(node.is_ready for node in nodes.values()),
    )


def _nodes_per_grade(
    nodes: Mapping[str, Node],
    taken: Mapping[str, Mapping[str, int]],
    models: Sequence[clusters.ResourceGrade],
) -> tuple[clusters.GradeCount, ...]:
    """Number of nodes per grade; the grade of a node is the highest one whose minimum amounts the node has free."""
    if not models:
        return ()
    ordered = sorted(models, key=lambda grade: grade.grade)
    least = [[(amount.name, _nano(amount.min)) for amount in grade.ranges] for grade in ordered]
    counts = [0] * len(ordered)
    for name, node in nodes.items():
        used = taken.get(name, {})
        left = {resource: amount - used.get(resource, 0) for resource, amount in node.allocatable}
        matching = [
            index
            for index, minimum in enumerate(least)
            if all(left.get(resource, 0) >= amount for resource, amount in minimum)
        ]
        if matching:
            counts[matching[-1]] += 1
    return tuple(
        clusters.GradeCount(grade=grade.grade, count=count)
        for grade, count in zip(ordered, counts, strict=True)
    )


def _add(sums: dict[str, int], amounts: Iterable[tuple[str, int]]) -> None:
    for resource, amount in amounts:
        sums[resource] = sums.get(resource, 0) + amount


def _read(amounts: Mapping[str, object]) -> dict[str, int]:
    """Parse quantities; unreadable ones count as 0."""
    return {name: _nano(str(amount)) for name, amount in amounts.items()}


def _nano(text: str) -> int:
    try:
        return quantity.nano_units(text)
    except quantity.QuantityError:
        return 0
