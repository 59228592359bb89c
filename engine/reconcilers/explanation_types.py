"""The explanation of a decision as clients read it: its basis, request, result, groups and preemptions."""

import msgspec
from msgspec import Struct

from engine.placement.explanations import Explanation


class Priority(Struct, frozen=True, rename="camel"):
    """Resolved priority and class of the binding; with preemption policy Never it may not preempt."""

    value: int
    class_name: str
    preemption_policy: str
    fault: str = ""


class Victim(Struct, frozen=True, rename="camel"):
    """A binding chosen for eviction from a cluster, with its replicas there."""

    key: str
    cluster: str
    replicas: int
    priority: int


class Preemption(Struct, frozen=True, rename="camel"):
    """The last capacity request of the binding: missing replicas, clusters and chosen victims.

    ``victims`` are those of all attempts for this request. ``reason`` is why the last attempt chose no victims.
    ``is_answered``: all shards have answered. If scheduling fails again, the binding sends another request, at
    ``again_at`` at the earliest.
    """

    missing: int
    clusters: tuple[str, ...]
    asked_at: str
    attempt: int
    again_at: str
    is_answered: bool = False
    victims: tuple[Victim, ...] = ()
    reason: str = ""


class Preempted(Struct, frozen=True, rename="camel"):
    """A preemption of the binding ``by`` another; it may return to the cluster at ``until`` (empty: at any time)."""

    by: str
    replicas: int
    at: str
    until: str = ""


class Basis(Struct, frozen=True, rename="camel"):
    """The step in which the decision was made; it determines the inputs (``ends``), the time and the rules.

    ``number`` is the sequence number of the step's last decision: views as of it show all decisions of the step.
    """

    shard: int
    step: int
    position: str
    number: int
    time: str
    release: str
    ends: dict[str, int]


class Explained(Struct, frozen=True, rename="camel"):
    """A scheduling decision on one binding with its basis, request, result and explanation.

    ``requests`` are those of one replica, as Kubernetes quantities.
    """

    key: str
    basis: Basis
    trigger: str
    mode: str
    replicas: int
    requests: dict[str, str] | None
    previous: dict[str, int]
    placement: msgspec.Raw
    condition: str
    message: str
    clusters: dict[str, int]
    excluded: dict[str, int]
    explanation: Explanation | None
    is_deleted: bool = False
    """Whether the template was deleted after this decision."""
    refused: str = ""
    """The reason why the policy that selects the template can't be applied; empty if it can."""
    overrides: dict[str, tuple[str, ...]] = {}
    """Override policies of the binding's newest works by cluster, in the order of application."""
    required_by: dict[str, tuple[str, ...]] = {}
    """Clusters in which dependent bindings need this template, by the key of the dependent binding."""
    former: tuple[str, ...] = ()
    """Clusters of the binding that get no work before they have removed the object of an earlier, deleted template."""
    labels: dict[str, dict[str, str]] = {}
    """Labels with preserved state on the binding's newest works, by cluster."""
    not_preserved: dict[str, dict[str, str]] = {}
    """Labels that could not be preserved in an ongoing eviction, with the reason of each, by evicted cluster."""
    priority: Priority | None = None
    """The binding's resolved priority; None if its policy sets none."""
    preemption: Preemption | None = None
    """The binding's last capacity request; None if it was met or the binding may not preempt."""
    preempted: dict[str, Preempted] = {}
    """Preemptions of this binding, by the cluster from which it was evicted and to which it has not returned."""
