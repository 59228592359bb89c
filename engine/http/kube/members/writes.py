"""Write requests of a simulated member's API, carried out by the member and recorded in the log.

An unmanaged object, one that the control plane does not propagate, is recorded whole. Of a managed object, only the
parts that the member owns are recorded: labels and annotations that the control plane does not set, a status, and the
replicas if the template leaves them to members. A deletion follows the propagation policy of its request.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from msgspec import structs
from starlette.requests import Request
from starlette.responses import Response

from engine import loop_share
from engine.domain import marks, namespaces
from engine.http.kube import (
    bodies,
    bootstrap_objects,
    definition_deletion,
    list_responses,
    rendering,
    requests,
)
from engine.http.kube.members.plane import MemberPlane
from engine.http.kube.write_parsing import Parsing, WriteRequest
from engine.kubeapi.admission import built_in_defaults
from engine.kubeapi.conversion import scales, versions
from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import Status, StatusError
from engine.kubeapi.rights.rbac import Rights, User
from engine.kubeapi.schema.resources import ApiPath, Resource
from engine.objects.owner_references import Propagation
from engine.simulation import (
    disruption_budgets,
    garbage_collection,
    kept_fields,
    lists,
    quotas,
    served_kinds,
)
from engine.simulation.state import Unmanaged
from engine.works import templates
from engine.writing import object_changes
from engine.writing.edits.objects import SCALE, STATUS, RequestedEdit
from engine.writing.edits.rights_checks import Permission
from engine.writing.mutations import Edited
from events import clusters, shapes, times
from events.json_values import Json
from events.kube_fields import ListMeta
from events.kube_objects import KubeObject
from projections import object_tables

_PLAIN: Final = requests.Form()
_DERIVED: Final = frozenset({"nodes.metrics.k8s.io", "pods.metrics.k8s.io"})
_NAMESPACES: Final = "namespaces"
_NODES: Final = "nodes"
_PODS: Final = "pods"
_IDENTITY: Final = ("resourceVersion", "uid", "generation")


class MemberWrites:
    """Carry out writes in one member, one after the other. All public methods raise StatusError.

    ``rights`` returns the rights of a user in the member, None if the user may do everything.
    """

    def __init__(
        self,
        plane: MemberPlane,
        clock_ms: Callable[[], int],
        rights: Callable[[User], Awaitable[Rights | None]],
    ) -> None:
        self._plane = plane
        self._clock_ms = clock_ms
        self._rights = rights
        self._parsing = Parsing(clock_ms, plane.last_number)
        self._lock = asyncio.Lock()

    async def write(self, request: Request, resource: Resource, api_path: ApiPath) -> Response:
        """Handle POST to a collection, and PUT and PATCH of an object or subresource."""
        return await self._parsing.carry_out(request, resource, api_path, self._change)

    async def delete(self, request: Request, resource: Resource, api_path: ApiPath) -> Response:
        """Handle DELETE of an object."""
        options = await bodies.deletion_options(request)
        async with self._lock:
            removed, warning = await self._remove(resource, api_path.namespace, api_path.name, options)
        return rendering.deletion(removed, warning)

    async def delete_all(
        self, request: Request, resource: Resource, api_path: ApiPath, fitting: list[KubeObject]
    ) -> Response:
        """Handle DELETE of a collection; ``fitting`` are the objects that the selectors chose."""
        del api_path  # the objects name their namespaces
        options = await bodies.deletion_options(request)
        async with self._lock:
            for value in fitting:
                with status_objects.already_gone():
                    await self._remove(resource, value.namespace, value.name, options)
        listed: ListMeta = {"resourceVersion": str(self._plane.last_number())}
        return await list_responses.answer(resource, fitting, _PLAIN, self._clock_ms(), listed)

    async def evict(self, request: Request, resource: Resource, api_path: ApiPath) -> Response:
        """Handle POST of an Eviction: delete a pod, unless a PodDisruptionBudget does not allow it."""
        options = await bodies.eviction_options(request)
        async with self._lock:
            found_pod = lists.find_pod(self._plane.state(), api_path.namespace, api_path.name)
            if found_pod is not None and not disruption_budgets.allows(self._plane.state(), found_pod):
                message = "Cannot evict pod as it would violate the pod's disruption budget."
                raise StatusError(429, "TooManyRequests", message)
            required = structs.replace(options, propagation=Propagation.UNSET)
            await self._remove(resource, api_path.namespace, api_path.name, required)
        return rendering.answer(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}, 201
        )

    async def _change(self, write: WriteRequest, edit: RequestedEdit) -> Response:
        """Carry out an edit; respond with the object as edited."""
        resource, writer = write.resource, write.writer
        async with self._lock:
            live = await self._plane.get(resource, writer.namespace, writer.name)
            self._check_writable(resource, writer.namespace, writer.name, live)
            if live is None:
                await self._check_namespace(resource, writer.namespace, writer.name)
            # Set ``newest`` again: the object may have changed since the request was parsed.
            newest = structs.replace(writer, newest=self._plane.last_number())
            edit = structs.replace(edit, writer=newest)
            edited = await loop_share.in_thread_if_large(write.body_bytes, edit.apply, live)
            permission = Permission(
                user=write.user, rights=await self._rights(write.user), creates=write.method == "POST"
            )
            permission.check(writer, edited.value, live)
            if live is None:
                self._check_quota(write, edited.value)
            if not write.query.dry_run and edited.value is not live:
                await self._write(write, live, edited)
                current = await self._plane.get(resource, writer.namespace, writer.name)
            else:
                current = None
        return self._answer(write, live, edited, current)

    async def _write(self, write: WriteRequest, live: KubeObject | None, edited: Edited) -> None:
        """Record an edit in the log and carry it out."""
        resource, state = write.resource, self._plane.state()
        try:
            value = versions.to_stored(resource, edited.value)
        except versions.ConversionError as error:
            raise status_objects.bad_request(str(error)) from None
        has_status = write.path.part == STATUS or resource.subresource(STATUS) is None
        ref = _reference(resource, write.writer.namespace, write.writer.name)
        key = ref.binding_key
        workload = state.managed(key)
        event: clusters.MemberObjectApplied | clusters.MemberObjectDeleted
        if workload is not None and live is not None:
            event = kept_fields.edited(self._plane.name, workload, live, value, has_status=has_status)
        elif live is not None and object_changes.is_finalized(value):
            event = clusters.MemberObjectDeleted(name=self._plane.name, object=ref)
        else:
            event = _written_unmanaged(
                self._plane.name, state.unmanaged.get(key), value, has_status=has_status
            )
        await self._record(event)

    async def _remove(
        self, resource: Resource, namespace: str, name: str, options: bodies.DeleteOptions
    ) -> tuple[Status | KubeObject, str]:
        """Delete an object with the options of its request.

        Return the Status or object for the response, and a warning (empty: none).
        """
        preconditions = object_changes.Preconditions(
            resource=resource, uid=options.uid, resource_version=options.resource_version
        )
        live = await self._plane.get(resource, namespace, name)
        if live is None:
            raise status_objects.not_found(resource, name)
        if resource.qualified == _PODS and (replica := self._replica(namespace, name)) is not None:
            preconditions.check(live)
            if not options.dry_run:
                await self._record(replica)
            return live, ""
        self._check_writable(resource, namespace, name, None if resource.qualified == _NODES else live)
        if resource.qualified == _NAMESPACES and name in namespaces.OF_EVERY_CLUSTER:
            raise status_objects.forbidden(resource, name, "this namespace may not be deleted")
        preconditions.check(live)
        state, ref = self._plane.state(), _reference(resource, namespace, name)
        deletion = garbage_collection.deletion(
            state,
            ref,
            versions.to_stored(resource, live),
            self._clock_ms(),
            propagation=options.propagation,
        )
        writes = [*self._deletions_of_kind(resource, ref), *deletion.writes]
        if deletion.marked is not None:
            item = state.unmanaged.get(ref.binding_key)
            writes = [
                *writes,
                _written_unmanaged(self._plane.name, item, deletion.marked, has_status=False),
            ]
        if writes and not options.dry_run:
            await self._record(*writes)
        if not deletion.is_final:
            remaining = await self._plane.get(resource, namespace, name) or live
            return remaining, deletion.warning
        if not options.dry_run and _is_built_in(resource, name) and not deletion.is_managed:
            await self._create_built_in(resource, namespace)
        return status_objects.deleted(resource, name, live.uid), deletion.warning

    def _deletions_of_kind(
        self, resource: Resource, ref: shapes.WorkloadRef
    ) -> list[clusters.MemberObjectDeleted]:
        """Return the deletions of all custom objects whose definition is ``ref``; none if ``ref`` is no definition.

        Raises StatusError (409) if some of these objects have finalizers.
        """
        items = served_kinds.objects(self._plane.state(), ref.binding_key)
        waiting = sum(bool(marks.finalizers(KubeObject.from_json(item.manifest))) for item in items)
        if waiting:
            raise definition_deletion.delayed(resource, ref.name, waiting)
        return [clusters.MemberObjectDeleted(name=self._plane.name, object=item.ref) for item in items]

    async def _create_built_in(self, resource: Resource, namespace: str) -> None:
        """Recreate an object that every namespace contains, after a client deleted it."""
        for value in await self._plane.built_in(resource):
            if value.namespace == namespace:
                await self._record(_written_unmanaged(self._plane.name, None, value, has_status=False))

    async def _record(self, *data: clusters.MemberWrite) -> None:
        if not self._plane.state().joined:
            raise status_objects.unavailable(f"cluster {self._plane.name} has not joined")
        await self._plane.write(*data)

    def _replica(self, namespace: str, name: str) -> clusters.MemberPodDeleted | None:
        """Return the event that deletes a running or waiting pod of a workload; None for other pods."""
        found_pod = lists.find_pod(self._plane.state(), namespace, name)
        if found_pod is None:
            return None
        return clusters.MemberPodDeleted(
            name=self._plane.name, owner=found_pod.workload.ref, slot=found_pod.pod.slot
        )

    def _check_writable(self, resource: Resource, namespace: str, name: str, live: KubeObject | None) -> None:
        """Raise StatusError (403) for objects that the simulation derives."""
        state = self._plane.state()
        key = _reference(resource, namespace, name).binding_key
        # A namespace that only exists because objects are in it is not stored, but it may be written.
        is_open = (
            key in state.unmanaged
            or key in state.workloads
            or resource.qualified in (_NAMESPACES, _NODES)
            or _is_built_in(resource, name)
        )
        is_new_node = resource.qualified == _NODES and live is None
        if resource.qualified in _DERIVED or is_new_node or (live is not None and not is_open):
            raise status_objects.forbidden(resource, name, f"the simulation of {self._plane.name} manages it")

    async def _check_namespace(self, resource: Resource, namespace: str, name: str) -> None:
        """Raise StatusError for a new object whose namespace does not exist (404) or is being deleted (403)."""
        if not namespace or namespace in namespaces.OF_EVERY_CLUSTER:
            return
        kind = (await self._plane.catalogue()).resource("", "v1", _NAMESPACES)
        live = None if kind is None else await self._plane.get(kind, "", namespace)
        if live is None:
            raise status_objects.namespace_not_found(namespace)
        if live.is_ending:
            raise status_objects.in_terminating_namespace(resource, name, namespace)

    def _check_quota(self, write: WriteRequest, value: KubeObject) -> None:
        """Raise StatusError (403) for an object that a quota of its namespace does not allow."""
        state, resource, writer = self._plane.state(), write.resource, write.writer
        reason = ""
        if quotas.is_limited(state, writer.namespace):
            ref = _reference(resource, writer.namespace, writer.name)
            if resource.qualified == _PODS:
                reason = quotas.refusal(
                    state, writer.namespace, templates.read(msgspec.json.encode(value.document))
                )
            reason = reason or quotas.refusal_of_object(state, ref)
        if reason:
            raise status_objects.forbidden(resource, writer.name, reason)

    def _answer(
        self,
        write: WriteRequest,
        live: KubeObject | None,
        edited: Edited,
        current: KubeObject | None,
    ) -> Response:
        resource = write.resource
        value = edited.value
        if current is not None:
            # The simulation may already have corrected a managed object; respond with the written values and
            # the newest version.
            newest = current.metadata
            derived = {name: newest[name] for name in _IDENTITY if name in newest}
            metadata = {**newest, **value.metadata, **derived}
            value = current.with_fields({**value.document, "metadata": metadata})
        elif live is None:
            now = times.to_seconds_text(self._clock_ms())
            value = value.with_metadata({"uid": str(uuid.uuid4()), "creationTimestamp": now})
        if versions.stored(resource) is resource:
            value = self._plane.rendered(resource, value)
        warnings = (*write.warnings, *edited.warnings)
        if write.path.part == SCALE:
            return rendering.answer(scales.scale_of(resource, value).document, warnings=warnings)
        code = 201 if live is None else 200
        return rendering.answer(
            rendering.render_object(resource, value, write.form, self._clock_ms()), code, warnings
        )


def _is_built_in(resource: Resource, name: str) -> bool:
    """Whether the object is one that every namespace contains from its creation, such as a service account."""
    return bootstrap_objects.NAMES.get(object_tables.Kind(resource.api_version, resource.kind)) == name


def _reference(resource: Resource, namespace: str, name: str) -> shapes.WorkloadRef:
    kept = versions.stored(resource)
    return shapes.WorkloadRef(api_version=kept.api_version, kind=kept.kind, name=name, namespace=namespace)


def _written_unmanaged(
    cluster: str, item: Unmanaged | None, value: KubeObject, *, has_status: bool
) -> clusters.MemberObjectApplied:
    """Return the event that writes an unmanaged object; without ``has_status`` the status of ``item`` is kept."""
    before: Json = {} if item is None else msgspec.json.decode(item.manifest, type=dict[str, object])
    status = value.at("status") if has_status else before.get("status")
    # Store the defaults: clients read them and send them with the next edit, which must not raise the generation.
    whole = object_changes.manifest(built_in_defaults.with_defaults(value))
    manifest: Json = msgspec.json.decode(whole, type=dict[str, object])
    written = KubeObject({**manifest, "status": status} if status else manifest)
    return clusters.MemberObjectApplied(name=cluster, manifest=written.raw)
