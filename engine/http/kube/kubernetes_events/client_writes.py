"""Writes of Kubernetes Events by clients, such as the recorders of controllers.

No decision depends on Events and they expire soon, so writes of Events do not use the write path of other objects. If
two servers change one Event at the same time, the last write wins.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import anyio
import msgspec
from starlette.responses import Response

from engine.http.kube import rendering
from engine.http.kube.control_plane import ControlPlane
from engine.http.kube.write_parsing import WriteRequest
from engine.kubeapi.conversion import kubernetes_events
from engine.kubeapi.errors import status_objects
from engine.kubeapi.errors.status_objects import Status, StatusError
from engine.kubeapi.schema.resources import ApiPath
from engine.writing import object_changes
from engine.writing.edits.objects import RequestedEdit
from engine.writing.edits.rights_checks import Permission
from engine.writing.execution import Report
from engine.writing.object_changes import Preconditions
from engine.writing.read_side import ReadSide
from engine.writing.write_api import CLIENT_SOURCE
from events import observations
from projections import client_events
from projections.client_events import ClientEvent

_BYTES_MAX: Final = 16_384
_TOGETHER: Final = 256
_DERIVED: Final = "this Event is derived from the log"
_NAMESPACES: Final = ApiPath(group="", version="v1", plural="namespaces")


class EventWrites:
    """Carry out this server's writes of Events, one after the other."""

    def __init__(
        self,
        reads: ReadSide,
        report: Callable[[Sequence[Report], str], Awaitable[None]],
        plane: ControlPlane,
        clock_ms: Callable[[], int],
    ) -> None:
        self._reads = reads
        self._report = report
        self._plane = plane
        self._clock_ms = clock_ms
        self._lock = anyio.Lock()

    async def change(self, write: WriteRequest, edit: RequestedEdit, permission: Permission) -> Response:
        """Create, replace, patch or apply an Event, if ``permission`` allows it; raises StatusError."""
        resource, writer = write.resource, write.writer
        async with self._lock:
            stored = await self._stored(write)
            live = (
                None if stored is None else kubernetes_events.to_served(stored.document, resource.api_version)
            )
            if stored is None:
                await self._check_namespace(write)
            edited = edit.apply(live)
            value = edited.value
            permission.check(writer, value, live)
            raw = object_changes.manifest(kubernetes_events.to_stored(value))
            if len(raw) > _BYTES_MAX:
                message = f"the Event has {len(raw)} bytes; at most {_BYTES_MAX} are allowed"
                raise StatusError(413, "RequestEntityTooLarge", message)
            if not write.query.dry_run and (stored is None or raw != bytes(stored.manifest)):
                await self._append(
                    observations.KubernetesEventWritten(
                        name=writer.name, namespace=writer.namespace, manifest=msgspec.Raw(raw)
                    )
                )
                value = await self._plane.events.named(resource, writer.namespace, writer.name) or value
        body = rendering.render_object(resource, value, write.form, self._clock_ms())
        warnings = (*write.warnings, *edited.warnings)
        return rendering.answer(body, 201 if stored is None else 200, warnings)

    async def remove(self, write: WriteRequest, preconditions: Preconditions, *, dry_run: bool) -> Status:
        """Delete an Event; return the body of the response. Raises StatusError."""
        namespace, name = write.writer.namespace, write.writer.name
        async with self._lock:
            stored = await self._stored(write)
            if stored is None:
                raise status_objects.not_found(write.resource, name)
            preconditions.check(stored.document)
            if not dry_run:
                await self._append(_deleted(namespace, name, stored))
        return status_objects.deleted(write.resource, name, stored.uid)

    async def remove_all(self, namespace: str) -> None:
        """Delete all Events of a namespace. Raises LogError and ProjectionError."""
        async with self._lock:
            number = await self._reads.catch_up()
            stored = await self._plane.reads.peek(
                lambda rows: client_events.listed(rows, number, namespace=namespace)
            )
            for start in range(0, len(stored), _TOGETHER):
                group = stored[start : start + _TOGETHER]
                await self._append(*(_deleted(namespace, event.document.name, event) for event in group))

    async def _append(
        self, *written: observations.KubernetesEventWritten | observations.KubernetesEventDeleted
    ) -> None:
        await self._report([Report(data.record_key, data, "") for data in written], CLIENT_SOURCE)
        await self._reads.catch_up()

    async def _stored(self, write: WriteRequest) -> ClientEvent | None:
        """Return the current Event if a client wrote it, None if there is none.

        Raises StatusError (403) if the engine derives it and the request would change it.
        """
        resource, writer = write.resource, write.writer
        number = await self._reads.catch_up()
        stored = await self._plane.reads.peek(
            lambda rows: client_events.named(rows, writer.namespace, writer.name, number)
        )
        if stored is not None or write.method == "POST":
            return stored
        if await self._plane.events.named(resource, writer.namespace, writer.name) is not None:
            raise status_objects.forbidden(resource, writer.name, _DERIVED)
        return stored

    async def _check_namespace(self, write: WriteRequest) -> None:
        """Raise StatusError if the namespace of a new Event does not exist (404) or is terminating (403)."""
        name = write.writer.namespace
        namespaces = await self._plane.resource(_NAMESPACES)
        if namespaces is None:
            return
        namespace = await self._plane.current(namespaces, "", name)
        if namespace is None:
            raise status_objects.not_found(namespaces, name)
        if namespace.is_ending:
            raise status_objects.in_terminating_namespace(write.resource, write.writer.name, name)


def _deleted(namespace: str, name: str, event: ClientEvent) -> observations.KubernetesEventDeleted:
    return observations.KubernetesEventDeleted(name=name, namespace=namespace, manifest=event.manifest)
