"""The agent of one cluster: follow its works, carry them out, and report the results until the cluster has left.

All tasks of a cluster share one gate to its API and one reporter. Clusters do not wait for each other.
"""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Final

import anyio
from anyio.abc import TaskGroup
from msgspec import Struct, structs

from engine import diagnostics
from engine.agent import (
    kinds,
    member_capacity,
    messages,
    reconciliation,
    reflector,
    watch_receivers,
)
from engine.agent.action_execution import ActionExecutor, Fault, SupersededError
from engine.agent.agent_metrics import ClusterCounters
from engine.agent.api_errors import ApiError, FailedError, ThrottledError, UnreachableError
from engine.agent.call_limits import Backoff, Gate
from engine.agent.checkpoint import Checkpoint
from engine.agent.configuration import Configuration
from engine.agent.gateway_client import GatewayClient
from engine.agent.key_queue import KeyQueue
from engine.agent.kubeconfigs import Access, KubeconfigError
from engine.agent.ledger import Identity, Ledger
from engine.agent.member_api import MemberApi
from engine.agent.namespaces import NamespaceSync
from engine.agent.orphans import OrphanSearch
from engine.agent.reconciliation import Entry
from engine.agent.reports import Reporter
from engine.agent.user_calls import UserCalls
from engine.domain import marks
from events import vocabulary

GRACE_SECONDS: Final = 40
_WORKERS: Final = 8
_DISCOVERY_S: Final = 30.0
_SERVED_SOON_S: Final = 1.0
"""Seconds from the definition of a new kind to a discovery run: by then the server serves the kind."""

_PROBE_S: Final = 5.0
_CAPACITY_REPORT_S: Final = 1.0
"""Minimum interval between capacity reports."""

_DRIFT_COOLDOWN_S: Final = 300.0
"""Seconds after a correction of drift. A further one in this time is delayed, each time longer."""

_FAULT_FIRST_S: Final = 1.0
_FAULT_LAST_S: Final = 60.0
_MESSAGE_CHARS: Final = 1_000
_LABELS: Final = f"{marks.MANAGED}=true"
_KINDS_THAT_ADD_KINDS: Final = frozenset({"CustomResourceDefinition", "APIService"})
_log = diagnostics.logger("agent")


class Settings(Struct, frozen=True, kw_only=True):
    """A cluster is unreachable after ``grace_seconds`` without a heartbeat; agents send four in that time."""

    grace_seconds: int = GRACE_SECONDS


class _Pace(Struct):
    """The retry delays of one binding; ``used_s`` is when the last delay began."""

    backoff: Backoff
    used_s: float


class MemberAgent:
    """Serve one cluster; ``run`` returns once the cluster has left and the ledger has no binding."""

    def __init__(
        self,
        configuration: Configuration,
        access: Access,
        kept: Checkpoint,
        settings: Settings,
        counts: ClusterCounters,
    ) -> None:
        self._name = configuration.cluster
        self._settings = settings
        self._gateway = GatewayClient(
            configuration.server, configuration.token, configuration.cluster, configuration.authority
        )
        self._api = MemberApi(access)
        self._counts = counts
        self._gate = Gate(self._follow_health, counts)
        self._history = reflector.History(self._forget_observed)
        self._ledger = Ledger(kept, self._name)
        self._reporter = Reporter(self._gateway, self._ledger, self._on_cluster_state, counts)
        self._kinds = kinds.Kinds(self._api, self._gate, self._reporter.report)
        self._scalers = watch_receivers.Scalers(self._reapply_scaled)
        self._namespaces = NamespaceSync(self._name, self._gateway, self._api, self._gate, self._kinds)
        self._executor = ActionExecutor(
            self._name,
            self._gateway,
            self._api,
            self._gate,
            self._kinds,
            self._scalers,
            self._namespaces.create,
        )
        self._queue = KeyQueue[str]()
        self._orphans = OrphanSearch(
            self._name,
            self._api,
            self._gate,
            self._kinds,
            self._ledger,
            self._gateway,
            self._queue,
        )
        on_change = self._on_capacity_change
        self._nodes = watch_receivers.Tracked(lambda node: node.name, member_capacity.node_of, on_change)
        self._pods = watch_receivers.Tracked(lambda pod: pod.uid, member_capacity.pod_of, on_change)
        self._paces: dict[str, _Pace] = {}
        self._followed: set[tuple[str, str]] = set()
        self._health = anyio.Event()
        self._capacity_changed_event = anyio.Event()
        self._kinds_change = anyio.Event()
        self._models: messages.Cluster = messages.Cluster(is_member=True)
        self._has_left = False
        self._tasks: TaskGroup | None = None

    async def run(self) -> None:
        """Serve until the cluster has left."""
        await self._ledger.load()
        self._orphans.is_needed = self._ledger.position is None
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                for task in (
                    self._ledger.run,
                    self._reporter.run,
                    self._report_health,
                    self._report_capacity,
                ):
                    tasks.start_soon(task)
                calls = UserCalls(self._name, self._gateway, self._api)
                for task in (self._follow_works, self._discover, self._namespaces.run, calls.run):
                    self._start(task)
                self._follow_capacity()
                for key, entry in self._ledger.entries():
                    self._queue.put(key)
                    self._follow_objects(entry)
                for _ in range(_WORKERS):
                    tasks.start_soon(self._work)
        finally:
            with anyio.CancelScope(shield=True):
                async with aclosing(self._api), aclosing(self._gateway):
                    # A cluster that joins later with this name must not continue from this position.
                    await (self._ledger.end() if self._has_left else self._ledger.save())

    async def _repeat_forever(self, task: Callable[[], Awaitable[None]]) -> None:
        """Repeat a task forever, with growing delays after errors."""
        backoff = Backoff()
        while True:
            began_s = anyio.current_time()
            try:
                await task()
                backoff.reset()
            except (ApiError, KubeconfigError) as error:
                _log.warning("agent task failed; retrying", cluster=self._name, error=str(error))
            await anyio.sleep(backoff.next_delay_s(anyio.current_time() - began_s))

    async def _follow_works(self) -> None:
        """Receive works after the stored position, or a full list if there is none, and queue their bindings."""
        listed: set[str] = set()
        async for line in self._gateway.follow(self._ledger.position):
            work = line.work
            if work is not None:
                listed.add(work.key)
                if not self._orphans.defer_removal(work):
                    self._take(work, is_listed=line.position is None)
            if line.is_listed and self._tasks is not None:
                self._orphans.remove_unlisted(listed, self._tasks)
            if line.namespaces is not None:
                self._namespaces.changed(line.namespaces)
            if line.position is not None:
                self._ledger.move(line.position)

    def _take(self, work: messages.Work, *, is_listed: bool) -> None:
        if self._ledger.take(work, is_listed=is_listed):
            self._paces.pop(work.key, None)
            self._queue.put(work.key)

    async def _work(self) -> None:
        """Process queued bindings."""
        while True:
            key = await self._queue.take()
            entry = self._ledger.get(key)
            if entry is not None:
                await self._carry_out(key, entry)
            self._queue.done(key)

    async def _carry_out(self, key: str, entry: Entry) -> None:
        """Carry out the next action of one binding; retry a failure, and set ``fault`` if that may be permanent."""
        try:
            await self._act(key, entry)
        except SupersededError:
            self._queue.put_later(key, self._pace(key))
        except (Fault, ApiError, KubeconfigError) as error:
            self._queue.put_later(key, self._pace(key))
            if isinstance(error, ThrottledError | UnreachableError) and not isinstance(error, FailedError):
                _log.info("waiting for an API", cluster=self._name, key=key, error=str(error))
            else:
                _log.warning("work not applied", cluster=self._name, key=key, error=str(error))
                self._counts.refused += 1
                entry.fault = str(error)[:_MESSAGE_CHARS]
        self._reporter.binding_changed(key)

    async def _act(self, key: str, entry: Entry) -> None:
        work = entry.work
        match reconciliation.decide(entry):
            case reconciliation.Apply(is_drift=is_drift):
                await self._executor.apply(entry, is_drift=is_drift)
                self._counts.applied += 1
                self._counts.drifts += is_drift
                self._ledger.put(key, entry)
                self._follow_objects(entry)
                # The watch may have delivered another client's change before the response to the apply.
                self._handle_change(key)
            case reconciliation.Remove() as action:
                if not await self._executor.remove(entry, action):
                    self._queue.put_later(key, self._pace(key))
                    return
                self._counts.removed += 1
                # A newer work may need an object again; the binding is then not finished.
                if action.is_last and entry.work is work:
                    self._ledger.removed(key, entry)
                else:
                    entry.applied = entry.seen = None
                    self._ledger.put(key, entry)
                    self._queue.put(key)
            case reconciliation.Forget() | "settled":
                pass
        # A newer work arrived during the action; take its action next.
        if entry.work is not work:
            self._queue.put(key)

    def _follow_objects(self, entry: Entry) -> None:
        """Start a watch of the applied object's kind, once per kind."""
        applied = entry.applied
        if applied is None or (kind := (applied.ref.api_version, applied.ref.kind)) in self._followed:
            return
        self._followed.add(kind)
        seeing = watch_receivers.Objects(kind, self._ledger, self._executor, self._handle_change)
        self._start(partial(self._follow_kind, kind, _LABELS, seeing))

    def _handle_change(self, key: str) -> None:
        """Handle a change of an object that the agent applied: report it, and correct drift."""
        entry = self._ledger.get(key)
        if entry is None:
            return
        self._reporter.binding_changed(key)
        if entry.ref is not None and entry.ref.kind in _KINDS_THAT_ADD_KINDS:
            self._kinds_change.set()
        if reconciliation.has_drifted(entry):
            # Another controller may undo each correction; growing delays bound the number of applies.
            pace = self._paces.get(key)
            if pace is None or anyio.current_time() > pace.used_s + _DRIFT_COOLDOWN_S:
                self._paces[key] = _Pace(Backoff(_FAULT_FIRST_S, _FAULT_LAST_S), anyio.current_time())
                self._queue.put(key)
            else:
                self._queue.put_later(key, self._pace(key))
        elif entry.work.state == "removed":
            self._queue.put(key)

    def _pace(self, key: str) -> float:
        pace = self._paces.setdefault(key, _Pace(Backoff(_FAULT_FIRST_S, _FAULT_LAST_S), 0.0))
        pace.used_s = anyio.current_time()
        return pace.backoff.next_delay_s()

    def _reapply_scaled(self, identity: Identity) -> None:
        """Apply an object again when an autoscaler starts or stops scaling it: the owner of its replicas changes."""
        key = self._ledger.at(identity)
        entry = self._ledger.get(key) if key is not None else None
        if key is not None and entry is not None and entry.applied is not None:
            # An empty digest equals no other, so ``reconciliation.decide`` returns Apply.
            entry.applied = structs.replace(entry.applied, fields="")
            self._queue.put(key)

    def _forget_observed(self, _seen: int, _now: int) -> None:
        """Forget the observed states after the member's API was restored from a backup.

        Its objects now have earlier contents and versions. Each counts as drifted when it is listed again, so the
        agent applies it again.
        """
        for key, entry in self._ledger.entries():
            reconciliation.forget_observed(entry)
            self._ledger.touch(key)
        # Search for objects that were removed after the backup: they exist again.
        if self._tasks is not None:
            self._orphans.search(self._tasks)

    async def _discover(self) -> None:
        """Refresh the list of kinds every 30 s, and soon after the agent changed an object that adds kinds."""
        while True:
            await self._kinds.refresh()
            self._kinds_change = anyio.Event()
            with anyio.move_on_after(_DISCOVERY_S):
                await self._kinds_change.wait()
                await anyio.sleep(_SERVED_SOON_S)

    def _follow_capacity(self) -> None:
        """Watch nodes, pods and autoscalers."""
        followers: tuple[tuple[tuple[str, str], reflector.Follower], ...] = (
            (kinds.NODES, self._nodes),
            (vocabulary.POD, self._pods),
            (kinds.SCALERS, self._scalers),
        )
        for kind, follower in followers:
            self._start(partial(self._follow_kind, kind, "", follower))

    async def _follow_kind(self, kind: tuple[str, str], labels: str, follower: reflector.Follower) -> None:
        """Watch a kind once the member serves it."""
        # The API has no notification for new kinds, so poll.
        while (resource := await self._kinds.find_watched(*kind)) is None:
            follower.refused()
            await anyio.sleep(_DISCOVERY_S)
        await reflector.follow(self._api, self._gate, self._history, resource, labels, follower)

    def _start(self, task: Callable[[], Awaitable[None]]) -> None:
        if self._tasks is not None:
            self._tasks.start_soon(self._repeat_forever, task)

    def _on_capacity_change(self) -> None:
        self._capacity_changed_event.set()

    async def _report_capacity(self) -> None:
        """Report capacity when it changes, at most once a second."""
        last_report: messages.CapacityReport | None = None
        while True:
            await self._capacity_changed_event.wait()
            self._capacity_changed_event = anyio.Event()
            # Wait for both lists: without its pods a node would seem free, and pods without nodes would not count.
            if not (self._nodes.is_known and self._pods.is_known):
                continue
            report = member_capacity.report(
                self._nodes.parts, self._pods.parts.values(), self._models.resource_models
            )
            if report != last_report:
                last_report = report
                self._reporter.report(report)
            await anyio.sleep(_CAPACITY_REPORT_S)

    def _follow_health(self) -> None:
        self._health.set()

    async def _report_health(self) -> None:
        """Report the health of the member's API four times per grace period, and when it changes."""
        while True:
            self._health = anyio.Event()
            self._reporter.report(await self._ready_report())
            with anyio.move_on_after(self._settings.grace_seconds / 4):
                await self._health.wait()

    async def _ready_report(self) -> messages.HealthReport:
        grace = self._settings.grace_seconds
        try:
            await self._api.probe(min(_PROBE_S, grace / 4))
        except (UnreachableError, KubeconfigError) as error:
            return messages.HealthReport(
                ready=False,
                grace_seconds=grace,
                reason="ClusterNotReachable",
                message=str(error)[:_MESSAGE_CHARS],
            )
        except ApiError:
            pass  # any response shows that the API is alive
        self._gate.answered()
        message = "cluster is healthy and ready to accept workloads"
        return messages.HealthReport(ready=True, grace_seconds=grace, reason="ClusterReady", message=message)

    def _on_cluster_state(self, cluster: messages.Cluster) -> None:
        """Handle the cluster's state from the gateway; end once the cluster has left and the ledger is empty."""
        if cluster.resource_models != self._models.resource_models:
            self._capacity_changed_event.set()
        self._models = cluster
        if (
            not cluster.is_member
            and not self._orphans.is_needed
            and not self._ledger.names()
            and self._tasks is not None
        ):
            _log.info("cluster removed; agent exits", cluster=self._name)
            self._has_left = True
            self._tasks.cancel_scope.cancel()
