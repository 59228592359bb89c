"""Shadow decisions: for each decision of Karmada's scheduler, this engine's decision on the state observed before."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from engine.domain.workload_groups import NO_RESTRICTIONS, GroupRestrictions
from engine.kubeapi.values import resource_versions
from engine.observer import group_index
from engine.observer.known_differences import known_difference
from engine.observer.observed_bindings import (
    ObservedBinding,
    basis_of,
    ends_pass,
    ends_with_success,
    placed_after,
    read_binding,
)
from engine.placement import decisions as placing
from engine.placement import explanations, fleet, parsing, requests, schedule
from engine.placement.failures import NO_CLUSTER_FIT
from events import observations, vocabulary

SAME: Final = "same"
RACE: Final = "race"
KNOWN: Final = "known"
UNEXPLAINED: Final = "unexplained"
VERDICTS: Final = (SAME, RACE, KNOWN, UNEXPLAINED)

_SNAPSHOTS_MAX: Final = 512
"""Maximum number of states of the clusters; the newest ones are kept."""

_EARLIER_MAX: Final = 64
"""Maximum number of earlier states of the clusters that are tried as the basis of a decision."""

_VERSIONS_MAX: Final = 64
"""Maximum number of versions of a binding that are kept."""

_TWO: Final = 2

_IGNORED: Final = (
    "the clusters of the other workloads of its group (workloadAffinity) are ignored, as by a scheduler without the "
    "feature gate WorkloadAffinity"
)
_NAMED_MAX: Final = 3
"""Maximum number of changed clusters that the reason of the verdict ``race`` names."""


class _Snapshot(Struct):
    """All clusters as JSON by name, as of a resourceVersion."""

    version: int
    clusters: Mapping[str, bytes]


class _Version(NamedTuple):
    """A version of a binding, and its restrictions by other workloads of its groups when the version was observed.

    ``group_changes`` is the value of ``GroupIndex.changes`` at that time.
    """

    binding: ObservedBinding
    restrictions: GroupRestrictions
    group_changes: int

    def is_repeated(self, earlier: "_Version") -> bool:
        """Whether the binding and its restrictions are the same as in ``earlier``, except the resourceVersion."""
        return self.restrictions == earlier.restrictions and self.binding.is_repeated(earlier.binding)


class _State(NamedTuple):
    """A state on which Karmada's scheduler may have based a decision.

    ``binding`` is the resourceVersion of the binding that ``scheduling_input`` was read from.
    """

    scheduling_input: parsing.Input
    binding: int
    clusters: _Snapshot
    restrictions: GroupRestrictions


class Explained(Struct, frozen=True, kw_only=True, rename="camel"):
    """A decision of Karmada's scheduler: the comparison, and an explanation of this engine's decision.

    ``clusters`` and ``latest`` are resourceVersions of states of the clusters. The explanation is for ``clusters``, the
    state that fits the decision best; ``compared.computed`` is for ``latest``, the newest state before the decision.
    """

    compared: observations.DecisionCompared
    clusters: int
    latest: int
    trigger: str
    replicas: int
    previous: dict[str, int]
    explanation: explanations.Explanation | None


DecisionKey: TypeAlias = tuple[str, str, str, int]
"""A decision: kind, namespace and name of its binding, and the binding's version that completed the decision."""


class Shadow:
    """Compares the decisions in a stream of observed objects.

    ``explained`` is the kind, namespace and name of a binding; ``explanation`` explains its newest decision.
    ``own_scheduler`` is the name of this engine's own scheduler, whose decisions are not compared.
    """

    def __init__(self, explained: tuple[str, str, str] | None = None, own_scheduler: str = "") -> None:
        self._explained = explained
        self._own_scheduler = own_scheduler
        self.explanation: Explained | None = None
        self._clusters: dict[str, bytes] = {}
        self._snapshots: deque[_Snapshot] = deque([_Snapshot(0, {})], _SNAPSHOTS_MAX)
        self._fleet = fleet.Fleet()
        self._in_fleet: Mapping[str, bytes] = {}
        """The clusters in ``_fleet``, as JSON."""
        self._groups = group_index.GroupIndex()
        self._histories: dict[tuple[str, str, str], deque[_Version]] = {}
        self._doubtful: dict[DecisionKey, tuple[observations.DecisionCompared, list[_Version]]] = {}

    def take(
        self, kind: str, manifest: msgspec.Raw, *, skipping: bool = False
    ) -> observations.DecisionCompared | None:
        """Process the next version of an object; return the comparison if this version completes a decision.

        ``skipping``: versions before this one may be missing, so decisions that may be based on them are not
        compared. Raises `msgspec.MsgspecError` or `parsing.UnreadableError` for an object that cannot be read; the
        last readable version of a cluster stays in use.
        """
        if kind == observations.CLUSTER:
            metadata = _HEAD.decode(manifest).metadata
            parsing.read_fleet(
                b"[" + bytes(manifest) + b"]"
            )  # a cluster that cannot be read would fail every comparison
            self._clusters[metadata.name] = bytes(manifest)
            # Kubernetes permits any text as a resourceVersion; without a number, use that of the last snapshot.
            version = resource_versions.number(metadata.resource_version)
            self._take_snapshot(self._snapshots[-1].version if version is None else version)
            return None
        if kind not in vocabulary.BINDING_KINDS:
            return None
        return self._take_binding(kind, read_binding(manifest), is_after_gap=skipping)

    def _take_binding(
        self, kind: str, binding: ObservedBinding, *, is_after_gap: bool
    ) -> observations.DecisionCompared | None:
        key = (kind, binding.metadata.namespace, binding.metadata.name)
        if self._own_scheduler and binding.spec.scheduler_name == self._own_scheduler:
            # If Karmada's scheduler takes over, an older version must not become the basis of its first decision.
            self._histories.pop(key, None)
            self._groups.put(binding)
            return None
        history = self._histories.get(key)
        if history is None or is_after_gap or history[-1].binding.metadata.uid != binding.metadata.uid:
            history = self._histories[key] = deque(maxlen=_VERSIONS_MAX)
        elif history[-1].binding.version >= binding.version:
            return None
        version = _Version(binding, self._groups.restrictions(binding), self._groups.changes)
        self._groups.put(binding)
        # Reports of members cause many equal versions. Keep the first, which is the version of the write, and the
        # last, on which the next decision may be based.
        if len(history) >= _TWO and version.is_repeated(history[-1]) and version.is_repeated(history[-_TWO]):
            history.pop()
        history.append(version)
        if len(history) < _TWO or not ends_pass([version.binding for version in history]):
            return None
        compared = self._compare(kind, list(history))
        if compared is not None and compared.verdict == UNEXPLAINED:
            self._doubtful[decision_key(compared)] = compared, list(history)
        # The next decision may be based on this version or, if Karmada's cache lags, on the one before.
        while len(history) > _TWO:
            history.popleft()
        return compared

    def compare_again(self, decision: DecisionKey) -> observations.DecisionCompared | None:
        """Compare an unexplained decision again; return the old comparison if the states before it are forgotten.

        None if the decision was already compared again. Changes of clusters and of bindings come by different
        watches, so a decision may arrive before its cause.
        """
        doubtful = self._doubtful.pop(decision, None)
        if doubtful is None:
            return None
        compared, versions = doubtful
        return (self._compare(decision[0], versions) if versions else None) or compared

    @property
    def pending_comparisons(self) -> tuple[DecisionKey, ...]:
        """The unexplained decisions that were not compared again yet, oldest first."""
        return tuple(self._doubtful)

    def accept(self, compared: observations.DecisionCompared) -> None:
        """Mark the decision of a recorded comparison as final: it is not compared again."""
        self._doubtful.pop(decision_key(compared), None)

    def take_deletion(self, kind: str, namespace: str, name: str, version: int = 0) -> None:
        """Process the deletion of an object; ``version`` is 0 if the version of the deletion is not known."""
        self._histories.pop((kind, namespace, name), None)
        if kind in vocabulary.BINDING_KINDS:
            self._groups.remove(namespace, name)
        if kind == observations.CLUSTER and self._clusters.pop(name, None) is not None:
            self._take_snapshot(version or self._snapshots[-1].version)

    def restored(self) -> None:
        """Handle the restore of the control plane from a backup: later versions may be lower than earlier ones."""
        self._snapshots = deque([_Snapshot(0, dict(self._clusters))], _SNAPSHOTS_MAX)
        # Without the earlier states of the clusters, the unexplained decisions cannot be compared again.
        self._doubtful = {decision: (compared, []) for decision, (compared, _) in self._doubtful.items()}

    def _take_snapshot(self, version: int) -> None:
        if self._snapshots[-1].version == version:
            self._snapshots.pop()
        self._snapshots.append(_Snapshot(version, dict(self._clusters)))

    def _compare(self, kind: str, history: list[_Version]) -> observations.DecisionCompared | None:
        versions = [version.binding for version in history]
        final = versions[-1]
        at = basis_of(versions)
        if at is None or self._snapshots[0].version >= versions[at + 1].version:
            return None  # the binding or the clusters as they were before the decision are not known
        placed = placed_after(versions, at)
        condition = final.scheduled
        observed = observations.ShadowCondition(
            clusters=placed,
            reason="" if condition is None else condition.reason,
            message="" if condition is None else condition.message,
        )
        is_success = ends_with_success(versions)
        basis = versions[at]
        states = self._states(history, at)
        latest = best = next(states)
        request, known = self._scheduling_request(latest)
        first = schedule.schedule(request, known)
        verdict, why = (SAME, "") if _agrees(observed, first, is_success=is_success) else (UNEXPLAINED, "")
        for state in states if verdict != SAME else ():
            if _agrees(observed, schedule.schedule(*self._scheduling_request(state)), is_success=is_success):
                verdict, why, best = RACE, _describe_basis(state, latest), state
                break
        known = self._fleet_of(latest.clusters)
        if verdict == UNEXPLAINED:
            why = self._explain(observed, latest, first, is_success=is_success)
            verdict = KNOWN if why else UNEXPLAINED
        compared = observations.DecisionCompared(
            kind=kind,
            name=final.metadata.name,
            namespace=final.metadata.namespace,
            version=final.version,
            basis=basis.version,
            verdict=verdict,
            why=why,
            observed=observed,
            computed=observations.ShadowCondition(
                clusters=dict(first.clusters), reason=first.reason, message=first.message
            ),
            reasons=() if verdict == SAME else _reasons(observed, request, known),
        )
        if self._explained == (kind, compared.namespace, compared.name):
            request, known = self._scheduling_request(best)
            self.explanation = Explained(
                compared=compared,
                clusters=best.clusters.version,
                latest=latest.clusters.version,
                trigger=request.trigger,
                replicas=request.replicas,
                previous=dict(request.current),
                explanation=schedule.schedule(request, known, explain=True).explanation,
            )
        return compared

    def _explain(
        self,
        observed: observations.ShadowCondition,
        latest: _State,
        decision: placing.Decision,
        *,
        is_success: bool,
    ) -> str:
        """Return the documented difference that explains why Karmada decided otherwise; empty if there is none."""
        if latest.restrictions != NO_RESTRICTIONS:
            free = schedule.schedule(*self._scheduling_request(latest._replace(restrictions=NO_RESTRICTIONS)))
            if _agrees(observed, free, is_success=is_success):
                return _IGNORED
        if decision.reason != placing.SUCCESS:
            return ""
        return known_difference(observed, *self._scheduling_request(latest))

    def _scheduling_request(self, state: _State) -> tuple[requests.Request, fleet.Fleet]:
        known = self._fleet_of(state.clusters)
        request = parsing.read_request(state.scheduling_input, known)
        return group_index.restricted(request, state.restrictions), known

    def _states(self, versions: list[_Version], at: int) -> Iterator[_State]:
        """Yield the states on which a decision may have been based, the likeliest first."""
        basis, first_write, final = versions[at].binding, versions[at + 1], versions[-1].binding
        states = [state for state in self._snapshots if state.version <= final.version]
        # Split at the first write of the pass, not at its basis: a cluster change between them may have caused it.
        before = [state for state in states if state.version < first_write.binding.version]
        after = states[len(before) :]
        newest = _State(basis.scheduling_input(), basis.version, before[-1], first_write.restrictions)
        yield newest
        if basis.spec.workload_affinity_groups is not None:
            for restrictions in self._groups.earlier_restrictions(basis, versions[0].group_changes):
                yield newest._replace(restrictions=restrictions)
        near = [*reversed(before[-_EARLIER_MAX:-1]), *after]
        for state in near:
            yield newest._replace(clusters=state)
        # Skip repeated inputs: most versions differ only in reports of members, which the scheduler does not read.
        seen = [newest.scheduling_input]
        placed = final.placed
        for other, _, _ in (*reversed(versions[:at]), *versions[at + 1 : -1]):
            if other.placed == placed != basis.placed:
                # A pass on this version would keep the clusters, as they are the decided ones, so it proves nothing.
                continue
            if (scheduling_input := other.scheduling_input()) in seen:
                continue
            seen.append(scheduling_input)
            for state in (before[-1], *near):
                yield newest._replace(
                    scheduling_input=scheduling_input, binding=other.version, clusters=state
                )

    def _fleet_of(self, state: _Snapshot) -> fleet.Fleet:
        """Return the clusters of a state. There is one `Fleet` object: a call also changes the one returned before."""
        # Change only what differs: decoding all clusters of a large fleet would take a large part of a second.
        for name in self._in_fleet.keys() - state.clusters.keys():
            self._fleet.remove(name)
        for name, cluster in state.clusters.items():
            if self._in_fleet.get(name) is not cluster:
                self._fleet.put(parsing.read_cluster(cluster))
        self._in_fleet = state.clusters
        return self._fleet


def decision_key(compared: observations.DecisionCompared) -> DecisionKey:
    """Return the identity of the decision that was compared."""
    return compared.kind, compared.namespace, compared.name, compared.version


def _describe_basis(state: _State, latest: _State) -> str:
    """Describe the state on which a decision was based, and how it differs from ``latest``, the expected one."""
    which = f"on the binding of {state.binding} " if state.binding != latest.binding else ""
    text = f"decided {which}with the clusters of {state.clusters.version}"
    if state.restrictions != latest.restrictions:
        return f"{text}, and before or after a change of the other workloads of its group"
    if state.clusters.version == latest.clusters.version:
        return text
    differing = state.clusters.clusters.items() ^ latest.clusters.clusters.items()
    names = sorted({name for name, _ in differing})
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    order = "before" if state.clusters.version < latest.clusters.version else "after"
    return f"{text}, {order} {', '.join(names[:_NAMED_MAX])}{more} changed"


def _agrees(observed: observations.ShadowCondition, decision: placing.Decision, *, is_success: bool) -> bool:
    if is_success:
        return decision.reason == placing.SUCCESS and dict(decision.clusters) == observed.clusters
    if decision.reason != observed.reason:
        return False
    # Karmada runs its filters in the random order of a map, so the counts per filter in its message are random.
    if observed.reason == NO_CLUSTER_FIT:
        return decision.message.partition(":")[0] == observed.message.partition(":")[0]
    return decision.message == observed.message


def _reasons(
    observed: observations.ShadowCondition, request: requests.Request, known: fleet.Fleet
) -> tuple[observations.ShadowReason, ...]:
    """Return this engine's reasons for each cluster in the observed result or in this engine's result."""
    computed = schedule.schedule(request, known, explain=True)
    shown = observed.clusters.keys() | dict(computed.clusters).keys()
    groups = computed.explanation.groups if computed.explanation is not None else ()
    return tuple(
        observations.ShadowReason(
            cluster=cluster.name,
            failed=cluster.failed,
            allocatable=cluster.allocatable,
            weight=cluster.weight,
            kept=cluster.kept,
        )
        for group in groups[-1:]
        for cluster in group.clusters
        if cluster.name in shown
    )


class _HeadMetadata(Struct, frozen=True, rename="camel"):
    name: str
    resource_version: str


class _Head(Struct, frozen=True):
    metadata: _HeadMetadata


_HEAD: Final = msgspec.json.Decoder(_Head)
