"""Search for orphans: bindings whose removals the agent missed, and objects left over after a lost checkpoint.

Only objects that an agent has applied are orphans. Others with the agent's marks belong to a Karmada that runs, or ran,
in the cluster; they stay.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from http import HTTPStatus
from typing import Final

import anyio
from anyio.abc import TaskGroup

from engine import diagnostics
from engine.agent import kinds, messages, object_preparation
from engine.agent.api_errors import ApiError, RefusedError
from engine.agent.call_limits import Backoff, Gate
from engine.agent.discovery import Resource
from engine.agent.gateway_client import GatewayClient
from engine.agent.key_queue import KeyQueue
from engine.agent.kubeconfigs import KubeconfigError
from engine.agent.ledger import Ledger
from engine.agent.member_api import MemberApi
from engine.agent.reconciliation import Entry
from engine.domain import marks
from events import keys, vocabulary
from events.kube_objects import KubeObject
from events.shapes import WorkloadRef

_NAMES_MAX: Final = 10
_log = diagnostics.logger("agent")


class OrphanSearch:
    """Searches all kinds of one member; puts an entry with the binding's newest work into the ledger for each orphan.

    The agent requests that work from the control plane. Only the control plane knows whether the policy preserves the
    object, and whether the binding was placed again since the list of works. The search ``is_needed`` if
    the agent starts without a stored position, and after each restore of the member from a backup.
    """

    def __init__(
        self,
        cluster: str,
        api: MemberApi,
        gate: Gate,
        known_kinds: kinds.Kinds,
        ledger: Ledger,
        gateway: GatewayClient,
        queue: KeyQueue[str],
    ) -> None:
        self._cluster = cluster
        self._api = api
        self._gate = gate
        self._kinds = known_kinds
        self._ledger = ledger
        self._gateway = gateway
        self._queue = queue
        self.is_needed = False
        self._is_running = False
        self._is_repeated = False
        self._removed: dict[str, messages.Work] = {}

    def defer_removal(self, work: messages.Work) -> bool:
        """Defer a work in state ``removed`` of an unknown binding until the search ends; return False for other works.

        The search may find the binding's object, so the removal must not be reported before that.
        """
        if not self.is_needed or work.state != "removed" or self._ledger.get(work.key) is not None:
            return False
        self._removed[work.key] = work
        return True

    def remove_unlisted(self, listed: AbstractSet[str], tasks: TaskGroup) -> None:
        """Start to remove bindings that a full list of works does not contain; start a search for orphans if necessary.

        Works that were removed while the feed was interrupted are only absent from the list, not reported as removed.
        """
        unlisted = {
            key: entry.work
            for key, entry in self._ledger.entries()
            if key not in listed and entry.work.state != "removed"
        }
        # Tasks, so that a failing request does not delay works. Each calls ``hold_position`` first: after a restart, an
        # agent without a stored position lists all works and starts the tasks again.
        if unlisted:
            self._ledger.hold_position()
            tasks.start_soon(self._remove, unlisted)
        if self.is_needed and not self._is_running:
            self.search(tasks)

    def search(self, tasks: TaskGroup) -> None:
        """Start a search; if one is running, it searches all kinds again."""
        self.is_needed = self._is_repeated = True
        if not self._is_running:
            self._is_running = True
            self._ledger.hold_position()
            tasks.start_soon(self._run)

    async def _remove(self, unlisted: dict[str, messages.Work]) -> None:
        """Remove bindings, given by key with their last known works, unless the control plane has placed them again."""
        backoff = Backoff()
        while unlisted:
            key, work = next(iter(unlisted.items()))
            try:
                newest = await self._gateway.newest_work(key)
            except ApiError as error:
                _log.warning("removal not known; retrying", cluster=self._cluster, key=key, error=str(error))
                # Try the other bindings first: the control plane may fail to answer for this one only.
                unlisted[key] = unlisted.pop(key)
                await anyio.sleep(backoff.next_delay_s())
                continue
            backoff.reset()
            del unlisted[key]
            entry = self._ledger.get(key)
            # If the binding was placed again, the newest work is not a removal. Its version may be lower than the known
            # one: a log that was restored from a backup may lack the known work.
            if entry is not None and entry.work is work and self._ledger.take(newest, is_listed=True):
                self._queue.put(key)
        self._ledger.release_position()

    async def _run(self) -> None:
        while self._is_repeated:
            self._is_repeated = False
            await self._search_all()
        self.is_needed = self._is_running = False
        for work in self._removed.values():
            if self._ledger.take(work):
                self._queue.put(work.key)
        self._removed = {}
        self._ledger.release_position()

    async def _search_all(self) -> None:
        """Return when every kind has been searched; kinds whose lists fail are tried again."""
        backoff, searched = Backoff(), set[Resource]()
        while True:
            try:
                await self._kinds.refresh()
                # One kind may fail for long, for example because of a conversion webhook that does not respond.
                failure = await self._search(searched)
            except (ApiError, KubeconfigError) as error:
                failure = error
            if failure is None:
                return
            _log.warning("orphans not searched; retrying", cluster=self._cluster, error=str(failure))
            await anyio.sleep(backoff.next_delay_s())

    async def _search(self, searched: set[Resource]) -> ApiError | None:
        """Search the kinds that are not in ``searched``, and add them to it; return the last failure."""
        failure: ApiError | None = None
        for resource in self._kinds.served():
            # Agents get no works for namespaces; the module ``namespaces`` deletes them.
            is_namespace = (resource.api_version, resource.kind) == vocabulary.NAMESPACE
            if resource in searched or not resource.watched or is_namespace:
                continue
            try:
                failed = await self._take(resource, await self._listed(resource))
            except ApiError as error:
                failed = error
            if failed is None:
                searched.add(resource)
            failure = failed or failure
        return failure

    def _put(self, entry: Entry) -> None:
        self._ledger.put(entry.work.key, entry)
        self._queue.put(entry.work.key)

    async def _listed(self, resource: Resource) -> Sequence[KubeObject]:
        try:
            listed = await self._gate.call(lambda: self._api.list(resource, f"{marks.MANAGED}=true"))
        except RefusedError as error:
            if error.code == HTTPStatus.UNAUTHORIZED:
                raise  # the token has expired; the next attempt uses a new one
            return ()  # the agent may not list this kind, so it cannot have applied objects of it
        return listed.items

    async def _take(self, resource: Resource, listed: Sequence[KubeObject]) -> ApiError | None:
        """Put the orphans among these objects into the ledger; return the last error of a request for a work."""
        failure: ApiError | None = None
        foreign: list[str] = []
        for item in listed:
            ref = WorkloadRef(
                api_version=resource.api_version,
                kind=resource.kind,
                name=item.name,
                namespace=item.namespace,
            )
            key = ref.binding_key
            if self._ledger.at(ref.identity) is not None or self._ledger.get(key) is not None:
                continue
            if not object_preparation.has_agent_marks(item, self._cluster):
                continue
            if not object_preparation.is_applied_by_agent(item):
                foreign.append(keys.full_name(*item.key))
                continue
            try:
                newest = await self._gateway.newest_work(key)
            except ApiError as error:
                failure = error
                continue
            # A work of this binding may have arrived during the request.
            if self._ledger.get(key) is None:
                self._put(Entry(work=newest, ref=ref))
        if foreign:
            _log.warning(
                "objects of another control plane stay",
                cluster=self._cluster,
                kind=resource.kind,
                count=len(foreign),
                objects=foreign[:_NAMES_MAX],
            )
        return failure
