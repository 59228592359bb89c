"""Observe a control plane: list and watch its objects, append each change to the log, and compare its decisions.

Watches of several kinds run side by side. Changes that arrive within ``GATHER_S`` are appended in the order of
their resourceVersions, which is one order over all kinds.
"""

import asyncio
import math
import operator
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

import msgspec

from engine import diagnostics
from engine.agent import reflector
from engine.agent.api_errors import ApiError, RefusedError
from engine.agent.call_limits import Backoff, Gate
from engine.agent.discovery import Resource, group_kind, preferred
from engine.agent.kubeconfigs import KubeconfigError
from engine.agent.member_api import MemberApi
from engine.domain import namespaces
from engine.log import port
from engine.observer import observation as observation_records
from engine.observer import shadow
from engine.observer.observation import Observation, Observations
from engine.observer.report import Report
from engine.placement import parsing
from events import codec, observations, topics, vocabulary
from events.json_values import as_text, objects_at
from events.kube_objects import KubeObject
from events.observations import CLUSTER
from events.records import Record

_NAMESPACE: Final = ("", "Namespace")
KINDS: Final = (
    ("cluster.karmada.io", "Cluster"),
    ("policy.karmada.io", "PropagationPolicy"),
    ("policy.karmada.io", "ClusterPropagationPolicy"),
    ("policy.karmada.io", "OverridePolicy"),
    ("policy.karmada.io", "ClusterOverridePolicy"),
    ("policy.karmada.io", "ClusterTaintPolicy"),
    ("policy.karmada.io", "FederatedResourceQuota"),
    ("work.karmada.io", "ResourceBinding"),
    ("work.karmada.io", "ClusterResourceBinding"),
    ("apps.karmada.io", "WorkloadRebalancer"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    _NAMESPACE,
    ("", "Event"),
)
"""Groups and kinds that are always observed, in addition to the kinds that policies select."""

_POLICIES: Final = frozenset({"PropagationPolicy", "ClusterPropagationPolicy"})
GATHER_S: Final = 0.02
"""Time in seconds for which changes are gathered, so that those of several kinds are appended in order."""

_RESUMED_S: Final = 0.5
"""Seconds after which a resumed watch is assumed to have delivered all changes that it missed."""

_DECIDED_ON: Final = frozenset({CLUSTER, *vocabulary.BINDING_KINDS})

_DISCOVERED_S: Final = 30.0
"""Minimum seconds between two discovery requests while the API does not serve some of the followed kinds."""

_DOUBT_S: Final = 2.0
"""Seconds until an unexplained decision is compared again: its cause may arrive later, from another watch."""

_BATCH_MAX: Final = 500
_log = diagnostics.logger(__name__)


class Observer:
    """Observes a control plane. ``source`` is its name in events, ``own_scheduler`` that of Reballast's scheduler."""

    def __init__(
        self,
        api: MemberApi,
        log: port.NumberedLog,
        source: str,
        clock_ms: Callable[[], int],
        gather_s: float = GATHER_S,
        own_scheduler: str = "",
        report: Report | None = None,
    ) -> None:
        self._gather_s = gather_s
        self._api = api
        self._log = log
        self._source = source
        self._clock_ms = clock_ms
        self._gate = Gate(lambda: None)
        self.history = reflector.History(self._record_restore)
        """The newest resourceVersion of the control plane; other requesters add the versions that they receive."""
        self._restores = 0
        self._observations = Observations()
        self._shadow = shadow.Shadow(own_scheduler=own_scheduler)
        self._waiting: list[tuple[int, int, Observation | observations.ControlPlaneRestored]] = []
        self._doubtful: deque[tuple[float, shadow.DecisionKey]] = deque()
        self._arrived = asyncio.Event()
        self._followed: set[Resource] = set()
        self._served: dict[tuple[str, str], Resource] = {}
        self._selected: set[tuple[str, str]] = set()
        self._missing: list[tuple[str, str]] = []
        self._discovered_s = -math.inf
        self._known_kinds: set[str] = set()
        self.complete = asyncio.Event()
        """Set once the first complete lists of clusters and bindings are in the log."""
        self.report = Report() if report is None else report
        """The compared decisions."""
        self.appended = 0
        """The number of changes that this process has appended."""

    async def run(self) -> None:
        """Observe until cancelled.

        Raises port.LogError if the log fails, port.LogMixedError if it has observations of another control plane.
        """
        await self._restore()
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._follow_kinds(tasks)
                await self._arrived.wait()
                await asyncio.sleep(self._gather_s)
                await self._append()

    async def _restore(self) -> None:
        """Rebuild the observed state from the log."""
        start, changes = 0, observation_records.Changes()
        self.report.clear()
        while batch := await self._log.read(topics.OBSERVATIONS, 0, start, port.READ_RECORDS):
            for record in batch:
                decoded = codec.decode(record)
                if not isinstance(decoded, codec.Decoded):
                    continue
                if (source := decoded.envelope.source) != self._source:
                    if isinstance(decoded.data, observations.ObjectObserved):
                        message = f"the log has the observations of {source}, not of {self._source}"
                        raise port.LogMixedError(message)
                    continue
                match decoded.data:
                    case observations.ObjectObserved() | observations.ObjectVanished() as observation:
                        seen = changes.read(observation)
                        self._observations.restore(seen)
                        self._learn(seen)
                        self._compare(seen)
                    case observations.ControlPlaneRestored():
                        self._observations.restored()
                        self._shadow.restored()
                        self._restores += 1
                    case observations.DecisionCompared() as compared:
                        self.report.take(compared)
                        self._shadow.accept(compared)
                    case _:
                        pass
            start = batch[-1].offset + 1
        # The observer was killed before it recorded the final comparisons of these unexplained decisions.
        for decision in self._shadow.pending_comparisons:
            self._queue_comparison(decision)

    async def _discover(self) -> None:
        """Request the kinds that the API serves; retry until a request succeeds."""
        backoff = Backoff()
        while True:
            try:
                served = preferred(await self._gate.call(self._api.discover))
                if self._observations.newest and (resource := served.get(_NAMESPACE)):
                    await self._check_identity(resource)
            except (KubeconfigError, ApiError) as error:
                _log.warning("control plane not read; retrying", error=str(error))
                await asyncio.sleep(backoff.next_delay_s())
            else:
                self._served = served
                self._discovered_s = asyncio.get_running_loop().time()
                return

    async def _check_identity(self, resource: Resource) -> None:
        # Check explicitly: the watches need not fail, since another control plane may accept the resourceVersions.
        with suppress(RefusedError):
            value = await self._gate.call(lambda: self._api.get(resource, "", namespaces.SYSTEM))
            self._check_same([] if value is None else [value])

    def _check_same(self, values: Iterable[KubeObject]) -> None:
        """Raise LogMixedError if an object proves that the log has the observations of another control plane."""
        if any(map(self._observations.is_of_another, values)):
            raise port.LogMixedError(
                "the log has the observations of another control plane: its namespace kube-system has another uid"
            )

    async def _follow_kinds(self, tasks: asyncio.TaskGroup) -> None:
        """Follow all kinds; repeat discovery for kinds not served yet, such as those of an aggregated API."""
        loop = asyncio.get_running_loop()
        followed = [*KINDS, *sorted(self._selected.difference(KINDS))]
        missing = [kind for kind in followed if kind not in self._served]
        if missing and loop.time() - self._discovered_s >= _DISCOVERED_S:
            await self._discover()
            missing = [kind for kind in followed if kind not in self._served]
            loop.call_later(_DISCOVERED_S, self._arrived.set)
        if missing != self._missing:
            self._missing = missing
            names = [f"{kind}.{group}" if group else kind for group, kind in missing]
            if self._served and {kind for _, kind in missing} >= _DECIDED_ON:
                _log.warning(
                    "API serves no Karmada kinds; use the kubeconfig of its API server, not that of its host cluster"
                )
            else:
                _log.info("kinds not served", kinds=", ".join(names) or "none")
        for group, name in followed:
            self._follow(tasks, group, name)

    def _follow(self, tasks: asyncio.TaskGroup, group: str, kind: str) -> None:
        """Start to list and watch a kind, if the API serves it and it is not followed yet."""
        resource = self._served.get((group, kind))
        if resource is None or not resource.watched or resource in self._followed:
            return
        self._followed.add(resource)
        full_kind = observation_records.full_kind(group, kind)
        newest = self._observations.newest.get(full_kind, 0)
        version = str(newest) if newest else ""
        if version:
            # Versions are kept by kind: an aggregated API may have versions far above those of the other kinds.
            self.history.add_version(version, resource)
            asyncio.get_running_loop().call_later(_RESUMED_S, self._mark_listed, full_kind)
        tasks.create_task(
            reflector.follow(
                self._api, self._gate, self.history, resource, "", _Receiver(self, resource), version
            )
        )

    def take(self, observation: Observation | None) -> None:
        """Queue an observation to be appended; do nothing for None."""
        if observation is not None:
            # A deletion found by a list has no version: order it after all known changes of the kind.
            order = observation.version or self._observations.newest.get(observation.full_kind, 0)
            self._waiting.append((self._restores, order, observation))
            self._arrived.set()

    def _record_restore(self, seen: int, version: int) -> None:
        """Queue the event of a restore from a backup: ``version`` is lower than ``seen``, the newest one before."""
        self._restores += 1
        self._observations.restored()
        restored = observations.ControlPlaneRestored(seen=seen, version=version)
        self._waiting.append((self._restores, -1, restored))
        self._arrived.set()

    def changed(self, value: KubeObject, *, is_gone: bool) -> None:
        """Queue the observation of a changed or deleted object."""
        self.take(self._observations.changed(value, is_gone=is_gone))

    def listed(self, group: str, kind: str, values: list[KubeObject]) -> None:
        """Queue the changes in a complete list of a kind; raises LogMixedError for a list of another control plane."""
        if (group, kind) == _NAMESPACE:
            self._check_same(values)
        for observation in self._observations.listed(group, kind, values):
            self.take(observation)
        self._mark_listed(observation_records.full_kind(group, kind))

    def _mark_listed(self, kind: str) -> None:
        """Mark a kind as completely listed; ``_append`` sets ``complete`` after it has appended the queued changes."""
        self._known_kinds.add(kind)
        self._arrived.set()

    async def _append(self) -> None:
        """Append the received changes in the order of their versions, each decision followed by its comparison."""
        is_complete = self._known_kinds >= _DECIDED_ON
        waiting, self._waiting = self._waiting, []
        self._arrived.clear()
        waiting.sort(key=operator.itemgetter(0, 1))
        for start in range(0, len(waiting), _BATCH_MAX):
            batch: list[Record] = []
            for _, _, observation in waiting[start : start + _BATCH_MAX]:
                if isinstance(observation, observations.ControlPlaneRestored):
                    self._shadow.restored()
                    batch.append(self._record(observation, ""))
                    continue
                self._learn(observation)
                batch.append(self._record(observation, ""))
                compared = self._compare(observation)
                if compared is not None and compared.verdict == shadow.UNEXPLAINED:
                    self._queue_comparison(shadow.decision_key(compared))
                elif compared is not None:
                    batch.append(self._counted(compared))
            await self._log.append(batch)
            self.appended += len(batch)
            await asyncio.sleep(0)
        await self._append_reconsidered()
        if is_complete:
            self.complete.set()

    def _queue_comparison(self, decision: shadow.DecisionKey) -> None:
        """Queue an unexplained decision to be compared again after ``_DOUBT_S``."""
        loop = asyncio.get_running_loop()
        self._doubtful.append((loop.time() + _DOUBT_S, decision))
        loop.call_later(_DOUBT_S, self._arrived.set)

    async def _append_reconsidered(self) -> None:
        """Compare again the unexplained decisions that have waited for ``_DOUBT_S``, and append the results."""
        now_s = asyncio.get_running_loop().time()
        batch: list[Record] = []
        while self._doubtful and self._doubtful[0][0] <= now_s:
            _, decision = self._doubtful.popleft()
            if (compared := self._shadow.compare_again(decision)) is not None:
                batch.append(self._counted(compared))
        if batch:
            await self._log.append(batch)
            self.appended += len(batch)

    def _counted(self, compared: observations.DecisionCompared) -> Record:
        self.report.take(compared)
        return self._record(compared, "-compared")

    def _compare(self, observation: Observation) -> observations.DecisionCompared | None:
        if observation.group:
            # a kind of another API group that has the name of a Karmada kind
            return None
        if isinstance(observation, observations.ObjectVanished):
            vanished = observation
            self._shadow.take_deletion(vanished.kind, vanished.namespace, vanished.name, vanished.version)
            return None
        try:
            return self._shadow.take(observation.kind, observation.manifest, skipping=observation.skipping)
        except (msgspec.MsgspecError, parsing.UnreadableError) as error:
            _log.warning("object skipped", key=observation.record_key, error=str(error))
            return None

    def _learn(self, observation: Observation) -> None:
        """Remember the kinds that a policy selects."""
        if observation.full_kind not in _POLICIES or isinstance(observation, observations.ObjectVanished):
            return
        value = msgspec.json.decode(observation.manifest, type=dict[str, object])
        for selector in objects_at(value, "spec", "resourceSelectors"):
            self._selected.add(group_kind(as_text(selector.get("apiVersion")), as_text(selector.get("kind"))))

    def _record(
        self,
        data: Observation | observations.DecisionCompared | observations.ControlPlaneRestored,
        suffix: str,
    ) -> Record:
        now_ms = self._clock_ms()
        # A list can show that an object is gone, but not the version of its deletion.
        version = str(data.version or f"gone-{now_ms}")
        if self._restores or (isinstance(data, observations.ObjectObserved) and data.skipping):
            # The log may have this version already: after a restore from a backup the control plane reuses
            # resourceVersions, and a list may contain reused ones before the restore is noticed.
            version += f"-{now_ms}"
        return observation_records.record(data, f"{version}{suffix}", self._source, now_ms)


class _Receiver(reflector.Follower):
    """Passes lists and changes of one kind to the observer; the reflector logs refused requests and retries them."""

    def __init__(self, observer: Observer, resource: Resource) -> None:
        self._observer = observer
        self._resource = resource

    def listed(self, items: list[KubeObject], _version: str = "") -> None:
        self._observer.listed(*group_kind(self._resource.api_version, self._resource.kind), items)

    def changed(self, value: KubeObject, *, is_gone: bool) -> None:
        self._observer.changed(value, is_gone=is_gone)
