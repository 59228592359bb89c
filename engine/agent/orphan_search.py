"""Search for objects with our marks that no work names, left over after a lost checkpoint."""

from collections.abc import AsyncGenerator

from engine.agent import kinds, messages, object_preparation
from engine.agent.api_errors import RefusedError
from engine.agent.call_limits import Gate
from engine.agent.ledger import Ledger
from engine.agent.member_api import MemberApi
from engine.agent.reconciliation import Entry
from engine.agent.watch_receivers import identity_of
from engine.domain import marks
from events.shapes import WorkloadRef


async def orphans(
    cluster: str, api: MemberApi, gate: Gate, known_kinds: kinds.Kinds, ledger: Ledger
) -> AsyncGenerator[Entry]:
    """Entries of removed works, one for each object with our marks that no work names; raises ApiError."""
    await known_kinds.refresh()
    for resource in known_kinds.served():
        # Namespaces have no works here; ``namespaces`` removes them.
        if not resource.watched or (resource.api_version, resource.kind) == kinds.NAMESPACES:
            continue
        try:
            listed = await gate.call(lambda kind=resource: api.list(kind, f"{marks.MANAGED}=true"))
        except RefusedError:
            continue  # a kind that we may not list is one that we could not have applied
        for item in listed.items:
            identity = identity_of((resource.api_version, resource.kind), item)
            if not object_preparation.has_our_marks(item, cluster) or ledger.at(identity) is not None:
                continue
            ref = WorkloadRef(
                api_version=resource.api_version,
                kind=resource.kind,
                name=item.name,
                namespace=item.namespace,
            )
            key = ref.binding_key
            if ledger.get(key) is None:
                yield Entry(work=messages.Work(key=key, state="removed", term=0, step=0), ref=ref)
