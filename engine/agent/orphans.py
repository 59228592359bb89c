"""Search for orphans: objects with our marks that no work names, left over after a lost checkpoint."""

from collections.abc import Callable

import anyio

from engine import diagnostics
from engine.agent import kinds, messages, object_preparation
from engine.agent.api_errors import ApiError, RefusedError
from engine.agent.call_limits import Backoff, Gate
from engine.agent.discovery import Resource
from engine.agent.kubeconfigs import KubeconfigError
from engine.agent.ledger import Ledger, identity_of
from engine.agent.member_api import Listed, MemberApi
from engine.agent.reconciliation import Entry
from engine.domain import marks
from events.shapes import WorkloadRef

_log = diagnostics.logger("agent")


class OrphanSearch:
    """Searches all kinds of one member; ``on_found`` gets an entry whose work is ``removed`` for each orphan."""

    def __init__(
        self,
        cluster: str,
        api: MemberApi,
        gate: Gate,
        known_kinds: kinds.Kinds,
        ledger: Ledger,
        on_found: Callable[[Entry], None],
    ) -> None:
        self._cluster = cluster
        self._api = api
        self._gate = gate
        self._kinds = known_kinds
        self._ledger = ledger
        self._on_found = on_found
        self._removed: dict[str, messages.Work] = {}

    def keep(self, work: messages.Work) -> bool:
        """Keep a removed work of an unknown binding until the search ends; return False for other works.

        The binding's object may exist until then, so the removal must not be reported.
        """
        if work.state != "removed" or self._ledger.get(work.key) is not None:
            return False
        self._removed[work.key] = work
        return True

    def take_removals(self) -> list[messages.Work]:
        """Return and forget the removals that were kept; call it once ``run`` has returned."""
        works, self._removed = list(self._removed.values()), {}
        return works

    async def run(self) -> None:
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
            is_namespace = (resource.api_version, resource.kind) == kinds.NAMESPACES
            if resource in searched or not resource.watched or is_namespace:
                continue
            try:
                self._take(resource, await self._gate.call(lambda kind=resource: self._list(kind)))
            except RefusedError:
                pass  # the agent may not list this kind, so it cannot have applied objects of it
            except ApiError as error:
                failure = error
                continue
            searched.add(resource)
        return failure

    async def _list(self, resource: Resource) -> Listed:
        return await self._api.list(resource, f"{marks.MANAGED}=true")

    def _take(self, resource: Resource, listed: Listed) -> None:
        for item in listed.items:
            ref = WorkloadRef(
                api_version=resource.api_version,
                kind=resource.kind,
                name=item.name,
                namespace=item.namespace,
            )
            is_ours = object_preparation.has_our_marks(item, self._cluster)
            if not is_ours or self._ledger.at(identity_of(ref)) is not None:
                continue
            key = ref.binding_key
            if self._ledger.get(key) is None:
                self._on_found(Entry(work=messages.Work(key=key, state="removed", term=0, step=0), ref=ref))
