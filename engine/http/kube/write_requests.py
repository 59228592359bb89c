"""Write requests of the Kubernetes API: compute the change, submit it, respond with the object as stored."""

import uuid
from collections.abc import Callable
from typing import Final

from msgspec import structs
from starlette.requests import Request
from starlette.responses import Response

from engine.controllers.namespace_deletion import Namespaces
from engine.domain import marks
from engine.http.kube import rendering
from engine.http.kube.access import Authorizer
from engine.http.kube.control_plane import ControlPlane
from engine.http.kube.kubernetes_events.client_writes import EventWrites
from engine.http.kube.write_modes import WriteMode
from engine.http.kube.write_parsing import Parsing, WriteRequest
from engine.http.kube.write_warnings import Relabelling, of_kinds
from engine.karmada import unsupported
from engine.kubeapi.conversion import scales, versions
from engine.kubeapi.errors import status_objects
from engine.kubeapi.patching import managed_fields
from engine.kubeapi.schema.resources import ApiPath, Resource
from engine.writing import object_changes
from engine.writing.edits import binding_changes, certificate_requests
from engine.writing.edits.objects import SCALE, STATUS, STATUSES, RequestedEdit
from engine.writing.edits.patching import JSON_PATCH, Patch
from engine.writing.edits.preconditions import AheadError
from engine.writing.edits.rights_checks import AuthorizedEdit, Permission, check_reserved
from engine.writing.edits.status import DerivedStatus
from engine.writing.mutations import Action, Problem, Target, Verdict, Written
from engine.writing.object_changes import Change, StatusChange
from engine.writing.write_api import CLIENT_SOURCE
from events import times
from events.json_values import Json, object_at
from events.kube_objects import KubeObject
from events.validation import known_kinds as kinds
from projections.documents import field_owners
from projections.documents import objects as documents

_NOT_KEPT: Final = "the status was not changed: only members and the engine report it"
_MEMBERS_OWN: Final = ("pods",)
"""Kinds whose status only members report. Nodes are not among them: the creator of a Node writes its status here."""


class WriteRequests:
    """Handle write requests. All public methods raise StatusError."""

    def __init__(
        self,
        mode: WriteMode,
        plane: ControlPlane,
        clock_ms: Callable[[], int],
        authorizer: Authorizer,
        namespaces: Namespaces,
        event_writes: EventWrites | None,
    ) -> None:
        self._forecasts = mode.forecasts
        self._sign = mode.sign
        self._event_writes = event_writes
        self._write_api = mode.write_api
        self._plane = plane
        self._authorizer = authorizer
        self._parsing = Parsing(clock_ms, plane.last_number, mode.write_api.tolerated)
        self._namespaces = namespaces
        self._clock_ms = clock_ms

    async def write(self, request: Request, resource: Resource, api_path: ApiPath) -> Response:
        """Handle POST to a collection, and PUT and PATCH of an object or subresource."""
        return await self._parsing.carry_out(request, resource, api_path, self._execute)

    async def _execute(self, write: WriteRequest, edit: RequestedEdit) -> Response:
        if write.path.part in STATUSES:
            derived = await self._derived_status(write)
            return await self._status(write, structs.replace(edit, derived=derived))
        if write.path.part == SCALE:
            value, written = await self._written_object(write, edit)
            warnings = write.warnings + written.mutated.warnings
            return rendering.answer(scales.scale_of(write.resource, value).document, warnings=warnings)
        return await self._change(write, edit)

    async def _status(self, write: WriteRequest, edit: RequestedEdit) -> Response:
        """Write a status; if clients may not write this kind's status, respond with a warning instead."""
        resource = write.resource
        route = kinds.route_of(versions.stored(resource).api_version, resource.kind)
        written = route in ("cluster", "configuration") or (
            route == "template"
            and resource.qualified not in _MEMBERS_OWN
            and not kinds.refused(resource.api_version, resource.kind)
        )
        if not written:
            return await self._unchanged(write)
        return await self._change(write, edit)

    async def _derived_status(self, write: WriteRequest) -> DerivedStatus | None:
        """Return the part of an object's status that the engine owns.

        None if the engine owns no part, and for clusters, whose status clients own.
        """
        if kinds.route_of(write.resource.api_version, write.resource.kind) == "cluster":
            return None
        value = await self._plane.get(write.resource, write.path.namespace, write.path.name)
        if value is None:
            return None
        for entry in managed_fields.entries(value):
            if field_owners.is_engine_entry(entry) and managed_fields.is_of_status(entry):
                owned = object_at(entry, "fieldsV1", "f:status")
                status = value.object_at("status")
                values = {name: item for name, item in status.items() if f"f:{name}" in owned}
                return DerivedStatus(status=values, entry=entry)
        return None

    async def _unchanged(self, write: WriteRequest) -> Response:
        """Respond with the stored object and a warning that its status was not changed."""
        value = await self._plane.get(write.resource, write.path.namespace, write.path.name)
        if value is None:
            raise status_objects.not_found(write.resource, write.path.name)
        body = rendering.render_object(write.resource, value, write.form, self._clock_ms())
        return rendering.answer(body, warnings=[_NOT_KEPT])

    async def _change(self, write: WriteRequest, edit: RequestedEdit) -> Response:
        if write.method in ("PUT", "PATCH") and binding_changes.is_binding(write.resource):
            return await self._change_binding(write, edit)
        if write.resource.is_event and self._event_writes is not None:
            return await self._event_writes.change(write, edit, await self._permission(write))
        if isinstance(edit, Patch) and edit.kind == JSON_PATCH:
            shown = await self._plane.get(write.resource, write.path.namespace, write.path.name)
            edit = structs.replace(edit, claims={} if shown is None else _claims(shown.metadata))
        relabelling = Relabelling() if write.method != "POST" else None
        value, written = await self._written_object(write, edit, relabelling)
        is_new = write.method == "POST" or (
            written.mutated.action == Action.CREATED and not await self._replaces_bootstrap(write)
        )
        code = 201 if is_new else 200
        body = rendering.render_object(write.resource, value, write.form, self._clock_ms())
        warnings = write.warnings + written.mutated.warnings + unsupported.warnings(value)
        if relabelling is not None:
            warnings += await relabelling.warnings(self._plane, value)
        warnings += await of_kinds(self._plane, value)
        if write.query.dry_run and self._forecasts is not None:
            warnings += await self._forecasts.warnings(
                value, write.target, written.mutated.events, CLIENT_SOURCE
            )
        return rendering.answer(body, code, warnings)

    async def _replaces_bootstrap(self, write: WriteRequest) -> bool:
        return (
            await self._plane.bootstrap_object(write.resource, write.path.namespace, write.path.name)
            is not None
        )

    async def _change_binding(self, write: WriteRequest, edit: RequestedEdit) -> Response:
        """Handle a change of a binding; ``binding_changes`` has the fields that clients may change."""
        resource, api_path = write.resource, write.path
        binding = await self._plane.get(resource, api_path.namespace, api_path.name)
        if binding is None:
            raise status_objects.not_found(resource, api_path.name)
        # The read above caught up with the log, so this server knows all versions that other replicas returned.
        writer = structs.replace(edit.writer, newest=self._plane.last_number())
        change, edited = binding_changes.read(resource, binding, structs.replace(edit, writer=writer))
        if not change.is_empty:
            answer = await self._write_api.change(change, dry_run=write.query.dry_run, source=CLIENT_SOURCE)
            checked(answer, resource, api_path.name)
            # Only the request is recorded; the binding changes once its owner shard has decided.
            binding = edited.value
        body = rendering.render_object(resource, binding, write.form, self._clock_ms())
        return rendering.answer(body, warnings=write.warnings + edited.warnings)

    async def _written_object(
        self, write: WriteRequest, edit: RequestedEdit, relabelling: Relabelling | None = None
    ) -> tuple[KubeObject, Written]:
        """Write an edited object; return the object after the write, and the result of the write API."""
        resource, target, dry_run = write.resource, write.target, write.query.dry_run
        written = await self._submit(write, target, edit, relabelling)
        mutated = written.mutated
        if not dry_run and mutated.action == Action.DELETED and target.namespace:
            # The edit removed the last finalizer of a terminating object. Its namespace may be terminating too, and may
            # be empty now.
            await self._namespaces.finish(target.namespace)
        elif not dry_run and target.route == "namespace":
            await self._namespaces.finish(target.name)
        elif not dry_run and target.namespace:
            await self._namespaces.resume(target.namespace)
        is_template = target.route == "template" and not _has_status(resource)
        if mutated.action == Action.CREATED and written.stored is not None and is_template:
            # A new object has no status or claiming policy yet, so the stored object is complete.
            return self._plane.rendered(resource, object_changes.live_object(target, written.stored)), written
        value = await self._plane.current(resource, target.namespace, target.name)
        if value is not None and not dry_run and mutated.action != Action.DELETED:
            return value, written
        computed = unstored(mutated.value, value, write, self._clock_ms())
        return self._plane.rendered(resource, computed), written

    async def _submit(
        self, write: WriteRequest, target: Target, edit: RequestedEdit, relabelling: Relabelling | None
    ) -> Written:
        """Submit an edit to the write API, within the user's rights."""
        resource = write.resource
        check_written_kind(target, resource)
        check_reserved(target, write.user)
        permission = await self._permission(write)
        authorized = AuthorizedEdit(
            edit=edit,
            permission=permission,
            bootstrap=await self._plane.bootstrap_object(resource, target.namespace, target.name),
            admit=self._admission(write, permission) or relabelling,
        )
        try:
            answer = await self._changed(write, target, authorized)
        except AheadError:
            # Another replica may have returned this resourceVersion. Query the log for its end, so that this
            # server knows the resourceVersion too.
            writer = structs.replace(edit.writer, newest=await self._plane.newest())
            known = structs.replace(authorized, edit=structs.replace(edit, writer=writer))
            answer = await self._changed(write, target, known)
        return checked(answer, resource, target.name)

    async def _permission(self, write: WriteRequest) -> Permission:
        rights = None if write.user.is_master else await self._authorizer.rights()
        return Permission(user=write.user, rights=rights, creates=write.method == "POST")

    def _admission(
        self, write: WriteRequest, permission: Permission
    ) -> certificate_requests.Admission | None:
        if write.resource.qualified != certificate_requests.RESOURCE:
            return None
        return certificate_requests.Admission(
            resource=write.resource,
            part=write.path.part,
            permission=permission,
            now_ms=self._clock_ms(),
            sign=self._sign,
            is_dry_run=write.query.dry_run,
        )

    async def _changed(self, write: WriteRequest, target: Target, edit: AuthorizedEdit) -> Written | Problem:
        change = (
            StatusChange(target=target, edit=edit)
            if write.path.part in STATUSES
            else Change(
                target=target,
                edit=edit,
                resource=write.resource,
                has_status=_has_status(write.resource),
                begins_with_status=_begins_with_status(write.resource),
            )
        )
        return await self._write_api.change(
            change, dry_run=write.query.dry_run, source=CLIENT_SOURCE, body_bytes=write.body_bytes
        )


def _has_status(resource: Resource) -> bool:
    """Whether the status is written with the object: a custom kind without a status subresource."""
    return resource.custom and resource.subresource(STATUS) is None


def _begins_with_status(resource: Resource) -> bool:
    return resource.qualified == certificate_requests.RESOURCE


def check_written_kind(target: Target, resource: Resource) -> None:
    """Raise StatusError (403) for kinds that clients may neither write nor delete, and for Events in a plan."""
    reason = kinds.refused(target.api_version, target.kind)
    if not reason and resource.is_event:
        reason = "Events have no effect on decisions, so they can't be planned"
    if reason:
        raise status_objects.forbidden(resource, target.name, reason)


def checked(answer: Written | Problem, resource: Resource, name: str) -> Written:
    """Return the result of a write; raise StatusError if the write API did not carry out the change."""
    if isinstance(answer, Written):
        return answer
    match answer.verdict:
        case Verdict.LATE:
            raise status_objects.conflict(resource, name)
        case Verdict.NOT_FOUND:
            raise status_objects.not_found(resource, name)
        case Verdict.UNKNOWN:
            raise status_objects.timed_out(f"{answer.reason}; check whether the change was made, then retry")


def _claims(metadata: Json) -> Json:
    """Return the labels and annotations that name the claiming policy; empty if there is none."""
    texts = {name: object_at(metadata, name) for name in ("labels", "annotations")}
    claims = {
        name: {mark: items[mark] for mark in items if mark in marks.CLAIMS} for name, items in texts.items()
    }
    return {name: items for name, items in claims.items() if items}


def unstored(outcome: KubeObject, current: KubeObject | None, write: WriteRequest, now_ms: int) -> KubeObject:
    """Return the result of a write that was not stored, with the labels and status that the engine derives."""
    resource, current_metadata = write.resource, {} if current is None else current.metadata
    metadata = dict(outcome.metadata)
    for name, texts in _claims(current_metadata).items():
        metadata[name] = {**object_at(metadata, name), **object_at(texts)}
    if "resourceVersion" in current_metadata:
        metadata["resourceVersion"] = current_metadata["resourceVersion"]
    new: Json = {
        "uid": str(uuid.uuid4()),
        "creationTimestamp": times.to_seconds_text(now_ms),
        "name": write.writer.name,
    }
    head: Json = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": new | metadata}
    value = outcome.with_fields(head)
    if resource.qualified == "namespaces":
        return documents.as_namespace(value)
    if write.path.part in STATUSES or _has_status(resource) or _begins_with_status(resource):
        return value
    begun = {} if current is None else current.object_at("status")
    return value.with_fields({"status": begun}) if begun else value.without_fields("status")
