"""Execution of the actions that ``reconciliation`` decides: apply objects, remove them, or release them to the cluster.

An existing object without this agent's label and annotation (``has_own_marks``) is only changed if the work's conflict
resolution is Overwrite.
"""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final, Protocol

import anyio
import msgspec

from engine import diagnostics
from engine.agent import kinds, messages, object_preparation, reconciliation, statuses
from engine.agent.api_errors import RefusedError
from engine.agent.call_limits import Gate
from engine.agent.discovery import Resource
from engine.agent.gateway_client import GatewayClient
from engine.agent.ledger import Identity
from engine.agent.member_api import MANAGER, MemberApi
from engine.agent.reconciliation import Applied, Entry, Observed
from engine.domain import marks
from events import shapes
from events.json_values import Json
from events.kube_objects import KubeObject
from events.shapes import WorkloadRef

_OVERWRITE: Final = "Overwrite"
_AUTOSCALERS_S: Final = 30.0
"""Seconds to wait for the first list of autoscalers before works are reported as not applied."""

_log = diagnostics.logger("agent")


class Fault(Exception):  # noqa: N818  # reported as the work's state, not an error of the program
    """Why a work can't be applied now; the message is shown to users."""


class SupersededError(Exception):
    """The work is outdated; the feed of works will bring a newer one."""


class Scaled(Protocol):
    """Which objects the member's autoscalers control."""

    def scales(self, identity: Identity) -> bool:
        """Whether an autoscaler in the member controls the object's replicas."""
        ...

    async def wait_until_listed(self, until_s: float) -> bool:
        """Wait until the autoscalers are known, or until the loop time ``until_s``; return whether they are known."""
        ...


class ActionExecutor:
    """Apply and remove objects in one member."""

    def __init__(
        self,
        cluster: str,
        gateway: GatewayClient,
        api: MemberApi,
        gate: Gate,
        known_kinds: kinds.Kinds,
        scaled: Scaled,
        create_namespace: Callable[[str], Awaitable[None]],
    ) -> None:
        self._cluster = cluster
        self._gateway = gateway
        self._api = api
        self._gate = gate
        self._kinds = known_kinds
        self._scaled = scaled
        self._create_namespace = create_namespace
        self._autoscalers_due_s: float | None = None

    async def apply(self, entry: Entry, *, is_drift: bool) -> None:
        """Apply the work of an entry and record the result in the entry.

        ``is_drift``: another client changed the object. Raises Fault, SupersededError, ApiError.
        """
        work = entry.work
        ref = work.template
        if ref is None:
            raise Fault("the work names no template")
        resource = await self._resource(ref)
        await self._wait_for_autoscalers()
        if entry.work is not work:
            raise SupersededError("a newer work arrived")
        manifest, overwrites = await self._desired_object(work, ref)
        live: KubeObject | None = None
        is_retained = object_preparation.retains_replicas(manifest)
        is_scaled = is_retained or self._scaled.scales(ref.identity)
        retained = object_preparation.retained_paths(manifest, work.reading, is_scaled=is_scaled)
        # Read the object before the apply only if it may belong to another client or has fields to retain.
        is_ours = entry.applied is not None and entry.seen is not None and entry.seen.uid == entry.applied.uid
        if retained or not is_ours:
            live = await self._gate.call(lambda: self._api.get(resource, ref.namespace, ref.name))
            if live is not None and not self._has_our_marks(live, entry.applied) and not overwrites:
                raise Fault(marks.conflict(ref, self._cluster))
        manifest = object_preparation.with_retained_fields(manifest, live, retained)
        # Do not force where no object was found: another client may have created it since. The API answers with a
        # conflict instead of overwriting.
        done = await self._apply(resource, manifest, force=live is not None or is_ours)
        seen = self.observe(done, ref, work.reading, is_retained=is_retained)
        entry.applied = Applied(
            ref=ref,
            term=work.term,
            step=work.step,
            content=reconciliation.content_of(work),
            uid=seen.uid,
            fields=seen.fields,
            is_retained=is_retained,
        )
        # A watch may have delivered a later change before this response.
        if entry.seen is None or not reconciliation.is_older(seen, entry.seen):
            entry.seen = seen
        entry.fault = ""
        _log.info(
            "applied", cluster=self._cluster, key=work.key, term=work.term, step=work.step, drift=is_drift
        )

    async def remove(self, entry: Entry, action: reconciliation.Remove) -> bool:
        """Delete an object, or (``preserved``) remove the agent's labels and annotations from it.

        Return False while the object still exists although it must be deleted. Raises ApiError.
        """
        ref = action.ref
        resource = await self._kinds.find_anywhere(ref.api_version, ref.kind)
        if resource is None:
            return True
        live = await self._gate.call(lambda: self._api.get(resource, ref.namespace, ref.name))
        if live is None or not self._has_our_marks(live, entry.applied):
            return True
        if action.preserved:
            change: Json = {
                "metadata": {
                    "labels": dict.fromkeys(marks.LABELS),
                    "annotations": dict.fromkeys(marks.ANNOTATIONS),
                }
            }
            await self._gate.call(lambda: self._api.patch(resource, ref.namespace, ref.name, change))
            _log.info("object released to the cluster", cluster=self._cluster, key=entry.work.key)
            return True
        if not live.is_ending:
            # Require the uid: the name may belong to another object by now.
            uid = live.uid
            await self._gate.call(lambda: self._api.delete(resource, ref.namespace, ref.name, uid))
            _log.info("object removed", cluster=self._cluster, key=entry.work.key)
            live = await self._gate.call(lambda: self._api.get(resource, ref.namespace, ref.name))
        return live is None

    def observe(
        self, value: KubeObject, ref: WorkloadRef, reading: shapes.Reading | None, *, is_retained: bool
    ) -> Observed:
        """The observed state of an object; its digest omits fields that the member may change.

        With ``is_retained`` it also omits the replicas, even if no autoscaler scales the object.
        """
        is_scaled = is_retained or self._scaled.scales(ref.identity)
        without = object_preparation.retained_paths(value, reading, is_scaled=is_scaled)
        return Observed(
            uid=value.uid,
            version=value.resource_version,
            fields=object_preparation.owned_digest(value, MANAGER, without),
            is_ending=value.is_ending,
            state=statuses.object_state(value, reading),
        )

    def has_own_marks(self, value: KubeObject) -> bool:
        """Whether an object has the label and annotation with which this cluster's agent marks what it manages."""
        return object_preparation.has_agent_marks(value, self._cluster)

    def _has_our_marks(self, live: KubeObject, applied: Applied | None) -> bool:
        return self.has_own_marks(live) or (applied is not None and applied.uid == live.uid)

    async def _wait_for_autoscalers(self) -> None:
        """Wait for the first list of autoscalers: an earlier apply would overwrite replicas that an autoscaler set."""
        if self._autoscalers_due_s is None:
            self._autoscalers_due_s = anyio.current_time() + _AUTOSCALERS_S
        # All works share one deadline: if each work waited this long, the workers would not get to removals.
        if not await self._scaled.wait_until_listed(self._autoscalers_due_s):
            raise Fault(
                "the cluster does not list its HorizontalPodAutoscalers, which may control the replicas"
            )

    async def _resource(self, ref: WorkloadRef) -> Resource:
        resource = await self._kinds.find(ref.api_version, ref.kind)
        if resource is None:
            raise Fault(f"the cluster does not serve {ref.kind} of {ref.api_version}")
        return resource

    async def _desired_object(self, work: messages.Work, ref: WorkloadRef) -> tuple[KubeObject, bool]:
        """The object to apply, and whether it may overwrite an object that this agent does not manage."""
        try:
            message = await self._gateway.manifest(work.key, work.version)
        except RefusedError as error:
            if error.code == HTTPStatus.NOT_FOUND:
                raise SupersededError(str(error)) from None
            raise
        if message.fault:
            raise Fault(message.fault)
        owner = object_preparation.Owner(cluster=self._cluster, work=work)
        try:
            manifest = object_preparation.prepared(message.manifest, owner)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise Fault(f"the template can't be read: {error}") from None
        # Servers of earlier releases send a name that an override sets. The check of the object's owner reads the
        # template's name, so it would miss the object of that name.
        if (*manifest.type_meta, *manifest.key) != (ref.api_version, ref.kind, ref.namespace, ref.name):
            raise Fault("the manifest is of another object than the template; update the server")
        return manifest, message.conflict_resolution == _OVERWRITE

    async def _apply(self, resource: Resource, manifest: KubeObject, *, force: bool) -> KubeObject:
        """Apply an object; create its namespace first if the API says that it is missing."""
        namespace = manifest.namespace if resource.namespaced else ""
        try:
            return await self._gate.call(lambda: self._api.apply(resource, manifest, force=force))
        except RefusedError as error:
            # A 404 can also mean that the kind is no longer served, or that a webhook did not find an object.
            is_missing = error.code == HTTPStatus.NOT_FOUND and f'namespaces "{namespace}"' in str(error)
            if not is_missing:
                raise
        await self._create_namespace(namespace)
        return await self._gate.call(lambda: self._api.apply(resource, manifest, force=force))
