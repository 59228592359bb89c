"""Create, update and delete namespaces in the member, as the control plane propagates them.

The agent labels the namespaces that it creates. It does not change namespaces that exist without its label, and deletes
only those that it has applied. While the cluster leaves, and after that, it deletes none, since Kubernetes deletes a
namespace with everything in it.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import anyio
import msgspec
from msgspec import Struct

from engine import diagnostics
from engine.agent import kinds, object_preparation
from engine.agent.api_errors import ApiError
from engine.agent.call_limits import Gate
from engine.agent.discovery import Resource
from engine.agent.gateway_client import GatewayClient
from engine.agent.member_api import MemberApi
from engine.domain import marks
from events import vocabulary
from events.kube_objects import KubeObject

_COMPARE_S: Final = 60.0
"""Seconds until namespaces are compared again without a known change, since other clients may change them."""

_log = diagnostics.logger("agent")


class Plan(Struct, frozen=True, kw_only=True):
    """Namespaces to apply, and those to delete as (name, uid)."""

    applied: tuple[KubeObject, ...]
    deleted: tuple[tuple[str, str], ...]


def plan(
    desired: Mapping[str, KubeObject], live: Sequence[KubeObject], cluster: str, *, keeps_others: bool
) -> Plan:
    """Return the namespaces to apply and to delete; ``live`` are all namespaces in the member.

    ``keeps_others``: delete none.
    """
    managed = {value.name: value for value in live if object_preparation.has_agent_marks(value, cluster)}
    unmanaged = {value.name for value in live} - managed.keys()
    applied = tuple(
        desired[name]
        for name in sorted(desired.keys() - unmanaged)
        if not _has_texts(managed.get(name), desired[name])
    )
    deleted = tuple(
        (name, managed[name].uid)
        for name in sorted(managed.keys() - desired.keys())
        if not managed[name].is_ending and object_preparation.is_applied_by_agent(managed[name])
    )
    return Plan(applied=applied, deleted=() if keeps_others else deleted)


class NamespaceSync:
    """Applies the propagated namespaces of the control plane in one member, and deletes those that no longer exist."""

    def __init__(
        self, cluster: str, gateway: GatewayClient, api: MemberApi, gate: Gate, known_kinds: kinds.Kinds
    ) -> None:
        self._cluster = cluster
        self._gateway = gateway
        self._api = api
        self._gate = gate
        self._kinds = known_kinds
        self._known: dict[str, KubeObject] = {}
        """The control plane's namespaces at the last request for them."""
        self._number: int | None = None
        self._change = anyio.Event()

    def changed(self, number: int) -> None:
        """Let ``run`` compare all namespaces if ``number``, the sequence number of their last change, is new."""
        if number != self._number:
            self._number = number
            self._change.set()

    async def run(self) -> None:
        """Compare all namespaces after each change, and once a minute; raises ApiError."""
        # The control plane's namespaces are unknown until the feed names the number of their last change.
        if self._number is None:
            await self._change.wait()
        while True:
            self._change = anyio.Event()
            await self._sync()
            with anyio.move_on_after(_COMPARE_S):
                await self._change.wait()

    async def create(self, name: str) -> None:
        """Create a namespace that an object needs: as the control plane propagates it, or else a plain one."""
        # The response contains all namespaces: too much to request it for each object of a new cluster. If a known
        # namespace has changed since, the feed announces the change and ``run`` corrects the namespace.
        if name not in self._known:
            await self._expected()
        plain = KubeObject({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        await self._apply(self._known.get(name, plain))

    async def _sync(self) -> None:
        resource = await self._kinds.find(*vocabulary.NAMESPACE)
        if resource is None:
            return
        desired, keeps_others = await self._expected()
        # List without a label selector: ``_apply`` would otherwise get each namespace that belongs to another client.
        live = await self._gate.call(lambda: self._api.list(resource))
        todo = plan(desired, live.items, self._cluster, keeps_others=keeps_others)
        failure: ApiError | None = None
        changes = [
            *((manifest.name, partial(self._apply, manifest)) for manifest in todo.applied),
            *((name, partial(self._delete, resource, name, uid)) for name, uid in todo.deleted),
        ]
        for name, change in changes:
            try:
                await change()
            except ApiError as error:
                # An admission webhook may refuse one namespace for long, or not respond: the others must not wait.
                failure = error
                _log.warning("namespace not changed", cluster=self._cluster, namespace=name, error=str(error))
        if failure is not None:
            raise failure

    async def _delete(self, resource: Resource, name: str, uid: str) -> None:
        # Require the uid: the name may belong to another namespace by now.
        await self._gate.call(lambda: self._api.delete(resource, "", name, uid))
        _log.info("namespace removed", cluster=self._cluster, namespace=name)

    async def _expected(self) -> tuple[dict[str, KubeObject], bool]:
        """Return the control plane's namespaces by name, and whether the agent must not delete others."""
        message = await self._gateway.namespaces()
        namespaces = [_prepared(raw) for raw in message.manifests]
        self._known = {value.name: value for value in namespaces}
        return self._known, message.keeps_others

    async def _apply(self, manifest: KubeObject) -> None:
        """Create or update a namespace, unless it exists without this agent's label."""
        resource = await self._kinds.find(*vocabulary.NAMESPACE)
        name = manifest.name
        if resource is None:
            return
        live = await self._gate.call(lambda: self._api.get(resource, "", name))
        if live is not None and not object_preparation.has_agent_marks(live, self._cluster):
            return
        # Do not force if the namespace did not exist: another client may have created it since.
        await self._gate.call(lambda: self._api.apply(resource, manifest, force=live is not None))
        _log.info("namespace applied", cluster=self._cluster, namespace=name)


def _prepared(raw: msgspec.Raw) -> KubeObject:
    """The namespace to apply; raises msgspec.MsgspecError if it is not a JSON object."""
    value = KubeObject.from_json(raw)
    metadata = object_preparation.kept_metadata(value)
    return marks.with_managed_names(
        KubeObject({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    )


def _has_texts(live: KubeObject | None, desired: KubeObject) -> bool:
    """Whether a namespace has all labels and annotations that the agent sets."""
    if live is None or live.is_ending:
        return False
    has_labels = desired.labels.items() <= live.labels.items()
    return has_labels and desired.annotations.items() <= live.annotations.items()
