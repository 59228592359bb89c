"""Nodes of a member: derived from its configuration, with what clients wrote into them; and which pods they run."""

import itertools
from collections.abc import Iterator
from typing import Final

import msgspec

from engine.simulation import addresses, capacity, lists, rollouts
from engine.simulation.specs import RELEASE, uid
from engine.simulation.state import MemberState, Workload
from events import times
from events.json_values import Json, at, object_at

NODES_MAX: Final = 5_000
_TOO_MANY: Final = "Too many pods"
_UNSCHEDULABLE: Final = (
    "0/{count} nodes are available: {reasons}. no new claims to deallocate, preemption: 0/{count} nodes are"
    " available: {count} No preemption victims found for incoming pod."
)


def name_of(state: MemberState, index: int) -> str:
    return f"{state.spec.name}-node-{index}" if index else control_plane(state)


def control_plane(state: MemberState) -> str:
    """Return the name of the node that runs the member's control plane, too."""
    return f"{state.spec.name}-control-plane"


class Places:
    """The nodes of a workload's pods: by their slots, but new pods avoid nodes that were cordoned before."""

    def __init__(self, state: MemberState, workload: Workload) -> None:
        self._count = max(sum(group.count for group in state.spec.nodes), 1)
        self._cordoned_ms: dict[str, int] = {}
        if workload.ref.kind != "DaemonSet":
            self._cordoned_ms = {
                item.ref.name: item.changed_ms
                for item in state.nodes.values()
                if at(msgspec.json.decode(item.manifest), "spec", "unschedulable") is True
            }
        self._state = state

    def of(self, pod: lists.Pod) -> int:
        index = pod.slot % rollouts.FORMER_SLOTS % self._count
        for step in range(self._count if self._cordoned_ms else 1):
            found = (index + step) % self._count
            since_ms = self._cordoned_ms.get(name_of(self._state, found))
            if since_ms is None or pod.created_ms < since_ms:
                return found
        return index


def unschedulable(state: MemberState, workload: Workload) -> str:
    """Return kube-scheduler's message for pending pods of a workload, empty if a node has capacity for one of them."""
    missing = capacity.insufficient(state.capacity, workload.template.amounts)
    if not missing:
        return ""
    count = sum(group.count for group in state.spec.nodes)
    reasons = sorted(f"{count} {_TOO_MANY if name == 'pods' else f'Insufficient {name}'}" for name in missing)
    return _UNSCHEDULABLE.format(count=count, reasons=", ".join(reasons))


def objects(state: MemberState, created_ms: int) -> Iterator[Json]:
    """Yield the nodes of a member with the labels, annotations, taints and cordons that its clients wrote."""
    for value in _derived(state, created_ms):
        metadata = object_at(value, "metadata")
        item = state.nodes.get(str(metadata["name"]))
        if item is None:
            yield value
            continue
        written: Json = msgspec.json.decode(item.manifest, type=dict[str, object])
        texts: Json = {
            field: {**object_at(metadata, field), **object_at(written, "metadata", field)}
            for field in ("labels", "annotations")
        }
        yield {
            **value,
            "metadata": {**metadata, **texts, "generation": item.generation},
            "spec": object_at(written, "spec"),
        }


def _derived(state: MemberState, created_ms: int) -> Iterator[Json]:
    """Yield the nodes of a member, at most ``NODES_MAX``."""
    created = times.to_seconds_text(created_ms)
    amounts = (group.allocatable for group in state.spec.nodes for _ in range(group.count))
    for index, allocatable in enumerate(itertools.islice(amounts, NODES_MAX)):
        name = name_of(state, index)
        labels: Json = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
        if index == 0:
            labels["node-role.kubernetes.io/control-plane"] = ""
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "simulated",
            "lastTransitionTime": created,
        }
        yield {
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
                    "kubeletVersion": RELEASE,
                    "osImage": "simulated",
                    "operatingSystem": "linux",
                },
            },
        }
