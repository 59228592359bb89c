"""Nodes of a member, derived from its configuration and its clients' writes, and the node of each pod."""

import functools
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from engine.simulation import addresses, capacity, listed_statuses, rollouts
from engine.simulation.specs import uid
from engine.simulation.state import MemberState, Workload
from events import times
from events.json_values import Json
from events.kube_fields import condition
from events.kube_objects import KubeObject
from events.validation.kinds_table import RELEASE

NODES_MAX: Final = 5_000
_HOST: Final = "kubernetes.io/hostname"
_EDITED_KEPT: Final = 4_096
_DIGITS_MAX: Final = 9
_NODE_INFO: Final[Json] = dict.fromkeys(
    ("bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "machineID", "systemUUID"), ""
)
"""Fields of ``nodeInfo`` that the API requires; they are empty, since a simulated node has no values for them."""

_TOO_MANY: Final = "Too many pods"
_NO_VICTIMS: Final = "No preemption victims found for incoming pod"
_UNHELPFUL: Final = "Preemption is not helpful for scheduling"
_UNSCHEDULABLE: Final = (
    "0/{count} nodes are available: {reasons}. no new claims to deallocate, preemption: 0/{count} nodes are"
    " available: {preemption}."
)


def name_of(state: MemberState, index: int) -> str:
    return f"{state.spec.name}-node-{index}" if index else control_plane(state)


def control_plane(state: MemberState) -> str:
    """Return the name of the member's first node, which also runs its control plane."""
    return f"{state.spec.name}-control-plane"


class NodeChoice:
    """Chooses the node of each pod by its slot; it skips nodes that refused the pod when the pod was created."""

    def __init__(self, state: MemberState, workload: Workload) -> None:
        self._state = state
        self._count = max(state.spec.node_count, 1)
        self._rules = workload.template.scheduling
        self._may_refuse = _may_refuse(state, workload)

    def of(self, pod: listed_statuses.Pod) -> int:
        first = pod.slot % rollouts.FORMER_SLOTS % self._count
        for step in range(self._count if self._may_refuse else 1):
            index = (first + step) % self._count
            node = _node(self._state, name_of(self._state, index))
            refusal = self._rules.refusal(is_cordoned=node.is_cordoned, taints=node.taints)
            if self._rules.selects(node.labels) and (not refusal or pod.created_ms < node.changed_ms):
                return index
        return first


class _Node(NamedTuple):
    """The fields of a node that scheduling reads; clients last changed the node at ``changed_ms`` (0: never)."""

    labels: Mapping[str, object]
    is_cordoned: bool
    taints: list[Json]
    changed_ms: int


def _node(state: MemberState, name: str) -> _Node:
    item, labels = state.nodes.get(name), _labels(state, name)
    if item is None:
        return _Node(labels, is_cordoned=False, taints=[], changed_ms=0)
    node = _edited(item.manifest, item.changed_ms)
    return node._replace(labels={**labels, **node.labels})


@functools.lru_cache(_EDITED_KEPT)
def _edited(manifest: bytes, changed_ms: int) -> _Node:
    value = KubeObject.from_json(manifest)
    is_cordoned = value.at("spec", "unschedulable") is True
    return _Node(value.labels, is_cordoned, value.objects_at("spec", "taints"), changed_ms)


def _labels(state: MemberState, name: str) -> dict[str, str]:
    role = {"node-role.kubernetes.io/control-plane": ""} if name == control_plane(state) else {}
    return {_HOST: name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", **role}


def _may_refuse(state: MemberState, workload: Workload) -> bool:
    """Whether some nodes may refuse the pods of a workload; never for DaemonSets and in modelled clusters."""
    is_limited = bool(state.nodes or workload.template.scheduling.selector)
    return is_limited and workload.ref.kind != "DaemonSet" and not state.spec.modelled


def _refusals(state: MemberState, workload: Workload) -> Counter[str]:
    """Return how many nodes refuse new pods of a workload, by the reason in kube-scheduler's words."""
    if not _may_refuse(state, workload):
        return Counter()
    count, rules = max(state.spec.node_count, 1), workload.template.scheduling
    # Check the first node, edited nodes, and those that a selector names one by one. The others differ only in
    # their names, so one check suffices for all of them.
    names = {control_plane(state), *state.nodes, *(value for name, value in rules.selector if name == _HOST)}
    named = [name for name in names if _index(state, name) in range(count)]
    numbers = Counter(dict.fromkeys(named, 1))
    numbers[""] = count - len(named)
    reasons: Counter[str] = Counter()
    for name, number in numbers.items():
        node = _node(state, name)
        first_refusal = rules.first_refusal(node.labels, is_cordoned=node.is_cordoned, taints=node.taints)
        if first_refusal and number:
            reasons[first_refusal] += number
    return reasons


def _index(state: MemberState, name: str) -> int:
    """Return the index of a node; -1 if the name does not have the form of a node name."""
    if name == control_plane(state):
        return 0
    number = name.removeprefix(f"{state.spec.name}-node-")
    return int(number) if number.isascii() and number.isdecimal() and len(number) <= _DIGITS_MAX else -1


def all_refuse(state: MemberState, workload: Workload) -> bool:
    """Whether all nodes of a member refuse new pods of a workload, whatever their capacity."""
    return _refusals(state, workload).total() >= max(state.spec.node_count, 1)


def unschedulable(state: MemberState, workload: Workload) -> str:
    """Return kube-scheduler's message for pending pods of a workload, empty if a node has capacity for one of them."""
    missing = capacity.scarce(state.capacity, workload.template.amounts, 1)
    refusals = _refusals(state, workload)
    count = state.spec.node_count
    rest = count - refusals.total()
    if rest and not missing:
        return ""
    names = [_TOO_MANY if name == "pods" else f"Insufficient {name}" for name in missing] if rest else []
    refused = [f"{number} {text}" for text, number in refusals.items()]
    reasons = sorted([*refused, *(f"{rest} {name}" for name in names)])
    victims = [f"{rest} {_NO_VICTIMS}"] if rest else []
    unhelpful = [f"{refusals.total()} {_UNHELPFUL}"] if refusals else []
    return _UNSCHEDULABLE.format(
        count=count, reasons=", ".join(reasons), preemption=", ".join([*victims, *unhelpful])
    )


def objects(state: MemberState, created_ms: int) -> Iterator[KubeObject]:
    """Yield the nodes of a member with the labels, annotations, taints and cordons that its clients wrote."""
    for value in _derived(state, created_ms):
        item = state.nodes.get(value.name)
        if item is None:
            yield value
            continue
        written = KubeObject.from_json(item.manifest)
        texts: Json = {
            "labels": {**value.labels, **written.labels},
            "annotations": {**value.annotations, **written.annotations},
        }
        labelled = value.with_metadata({**texts, "generation": item.generation})
        yield labelled.with_fields({"spec": written.object_at("spec")})


def _derived(state: MemberState, created_ms: int) -> Iterator[KubeObject]:
    """Yield the nodes of a member, at most ``NODES_MAX``."""
    created = times.to_seconds_text(created_ms)
    amounts = (group.allocatable for group in state.spec.nodes for _ in range(group.count))
    for index, allocatable in enumerate(itertools.islice(amounts, NODES_MAX)):
        name = name_of(state, index)
        labels = _labels(state, name)
        ready = condition("Ready", "True", "KubeletReady", "simulated", created)
        yield KubeObject(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {
                    "name": name,
                    "uid": uid(state.spec.name, "node", name),
                    "creationTimestamp": created,
                    "labels": labels,
                },
                "spec": {},
                "status": {
                    "capacity": allocatable,
                    "allocatable": allocatable,
                    "addresses": [
                        {"type": "InternalIP", "address": addresses.of_node(state.spec.name, name)},
                        {"type": "Hostname", "address": name},
                    ],
                    "conditions": [ready],
                    "nodeInfo": {
                        **_NODE_INFO,
                        "architecture": "amd64",
                        "kubeletVersion": RELEASE,
                        "osImage": "simulated",
                        "operatingSystem": "linux",
                    },
                },
            }
        )
