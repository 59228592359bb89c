"""Deletions of objects that clients request, and of the objects that depend on them."""

from collections.abc import Callable
from typing import Final

from msgspec import structs
from starlette.requests import Request
from starlette.responses import Response

from engine.controllers.garbage_collection import GarbageCollection
from engine.controllers.namespace_deletion import Namespaces
from engine.domain import namespaces
from engine.http.kube import bodies, definition_deletion, list_responses, rendering, requests, write_requests
from engine.http.kube.control_plane import ControlPlane
from engine.http.kube.kubernetes_events.client_writes import EventWrites
from engine.http.kube.write_modes import WriteMode
from engine.http.kube.write_parsing import Parsing, WriteRequest
from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import Status
from engine.kubeapi.schema.custom_kinds import DEFINITIONS
from engine.kubeapi.schema.resources import ApiPath, Resource
from engine.objects.owner_references import Propagation
from engine.writing.edits.rights_checks import check_reserved
from engine.writing.mutations import Action, Problem, Written
from engine.writing.object_changes import Preconditions, Removal
from engine.writing.write_api import CLIENT_SOURCE
from events.kube_objects import KubeObject

_PLAIN: Final = requests.Form()
_DELETES_RETURN_OBJECT: Final = frozenset(
    {
        "deviceclasses.resource.k8s.io",
        "persistentvolumeclaims",
        "persistentvolumes",
        "podtemplates",
        "resourceclaims.resource.k8s.io",
        "resourceclaimtemplates.resource.k8s.io",
        "resourcequotas",
        "resourceslices.resource.k8s.io",
        "serviceaccounts",
        "services",
        "storageclasses.storage.k8s.io",
        "volumeattributesclasses.storage.k8s.io",
    }
)
"""Kinds whose DELETE returns the deleted object instead of a Status, as their registries in Kubernetes do."""


class DeletionRequests:
    """Handle deletions. All public methods raise StatusError."""

    def __init__(
        self,
        mode: WriteMode,
        plane: ControlPlane,
        clock_ms: Callable[[], int],
        namespaces: Namespaces,
        garbage: GarbageCollection,
        event_writes: EventWrites | None,
    ) -> None:
        self._mode = mode
        self._plane = plane
        self._parsing = Parsing(clock_ms, plane.last_number, mode.write_api.tolerated)
        self._namespaces = namespaces
        self._garbage = garbage
        self._clock_ms = clock_ms
        self._event_writes = event_writes

    async def delete(self, request: Request, resource: Resource, api_path: ApiPath) -> Response:
        """Handle DELETE of an object."""
        write = self._parsing.read(request, resource, api_path, api_path.name, api_path.namespace)
        options = await bodies.deletion_options(request)
        removed = await self._remove(write, options)
        return rendering.deletion(removed)

    async def delete_all(
        self, request: Request, resource: Resource, api_path: ApiPath, fitting: list[KubeObject]
    ) -> Response:
        """Handle DELETE of a collection; ``fitting`` are the objects that the selectors chose."""
        options = await bodies.deletion_options(request)
        for value in fitting:
            namespace, name = value.key
            write = self._parsing.read(request, resource, api_path, name, namespace)
            if await self._plane.is_bootstrap_object(resource, namespace, name):
                continue
            with status_objects.already_gone():
                await self._remove(write, options)
        number = str(await self._plane.number())
        return await list_responses.answer(
            resource, fitting, _PLAIN, self._clock_ms(), {"resourceVersion": number}
        )

    async def _remove(self, write: WriteRequest, options: bodies.DeleteOptions) -> Status | KubeObject:
        """Delete an object; return the Status or object for the response."""
        resource, target, dry_run = write.resource, write.target, options.dry_run
        preconditions = Preconditions(
            resource=resource,
            uid=options.uid,
            resource_version=options.resource_version,
            # Another replica may have returned a version that this server does not know yet.
            newest=await self._plane.newest() if options.resource_version else 0,
        )
        if resource.is_event and self._event_writes is not None:
            return await self._event_writes.remove(write, preconditions, dry_run=dry_run)
        current = await self._plane.get(resource, target.namespace, target.name)
        if current is not None:
            write_requests.check_written_kind(target, resource)
        check_reserved(target, write.user)
        is_namespace = target.route == "namespace"
        is_bootstrap = await self._plane.is_bootstrap_object(resource, target.namespace, target.name)
        if is_bootstrap or (is_namespace and target.name in namespaces.BUILT_IN):
            reason = "this namespace may not be deleted" if is_namespace else "it is a built-in object"
            raise status_objects.forbidden(resource, target.name, reason)

        removal = Removal(
            target=target,
            preconditions=preconditions,
            now_ms=self._clock_ms(),
            propagation=options.propagation,
        )
        answer, is_gone = await self._delete(resource, removal, current, dry_run=dry_run)
        written = write_requests.checked(answer, resource, target.name)
        removed = written.mutated.value
        if is_gone and resource.qualified not in _DELETES_RETURN_OBJECT:
            return status_objects.deleted(resource, target.name, removed.uid)
        if is_gone and written.resource_version:
            removed = removed.with_metadata({"resourceVersion": str(written.resource_version)})
        if is_gone:
            return self._plane.rendered(resource, removed)
        current = await self._plane.current(resource, target.namespace, target.name)
        if current is not None and current.is_ending:
            return current
        computed = write_requests.unstored(removed, current, write, self._clock_ms())
        return self._plane.rendered(resource, computed)

    async def _delete(
        self, resource: Resource, removal: Removal, current: KubeObject | None, *, dry_run: bool
    ) -> tuple[Written | Problem, bool]:
        """Delete an object or mark it as terminating; return the write API's answer, and whether it is deleted.

        ``current`` is the object in the views; None if it is not there.
        """
        write_api, is_planned = self._mode.write_api, self._mode.is_planned
        if is_planned and removal.propagation is Propagation.FOREGROUND:
            removal = structs.replace(removal, propagation=Propagation.BACKGROUND)
        # The requests of a plan are dry runs too, but a plan needs the further deletions that a deletion causes.
        if dry_run and not is_planned:
            answer = await write_api.change(removal, dry_run=True, source=CLIENT_SOURCE)
            return answer, _is_deletion(answer)
        if removal.target.route == "namespace":
            answer, is_gone = await self._namespaces.end(removal.target, removal.preconditions)
        else:
            if current is not None:
                is_immediate = is_planned or removal.target.route == "cluster"
                removal = await self._garbage.prepared(removal, current, is_immediate=is_immediate)
            if resource.qualified == DEFINITIONS:
                await definition_deletion.delete_objects(resource, removal, self._plane, write_api)
            answer = await write_api.change(removal, source=CLIENT_SOURCE)
            is_gone = _is_deletion(answer)
        if is_gone and current is not None and is_planned:
            await self._garbage.delete_dependents(current.uid)
        return answer, is_gone


def _is_deletion(answer: Written | Problem) -> bool:
    return isinstance(answer, Written) and answer.mutated.action == Action.DELETED
