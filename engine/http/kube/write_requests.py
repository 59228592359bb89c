"""Write requests of the Kubernetes API: compute the change, submit it, respond with the object as stored."""

import secrets
import uuid
from collections.abc import Callable
from typing import Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from engine import loop_share
from engine.http import bodies
from engine.http.kube import (
    authentication,
    escalation,
    eviction_permission,
    mutations,
    rendering,
    requests,
    reserved_objects,
    scale_mutations,
    status_mutations,
)
from engine.http.kube.authorizer import Authorizer
from engine.http.kube.control_plane import ControlPlane
from engine.http.kube.namespace_deletion import Namespaces
from engine.http.kube.paths import ApiPath
from engine.kubeapi.admission.rules import definitions
from engine.kubeapi.conversion import scales, versions
from engine.kubeapi.errors import causes, status_objects
from engine.kubeapi.errors.status_objects import Cause, StatusError
from engine.kubeapi.patching import managed_fields
from engine.kubeapi.requests import repeated_fields
from engine.kubeapi.rights.rbac import Act, Rights, User
from engine.kubeapi.schema import custom_kinds
from engine.kubeapi.schema.resources import Resource
from engine.writing import object_changes
from engine.writing import targets as wishes
from engine.writing.execution import BUILT_IN_NAMESPACES
from engine.writing.object_changes import Change, Compute, Removal, StatusChange
from engine.writing.results import LATE, NOT_FOUND, Result
from engine.writing.write_api import WriteApi
from events import times, vocabulary
from events.json_values import Json, as_list, as_object
from events.validation import known_kinds as kinds
from projections.documents import field_owners

SOURCE: Final = "/reballast/api"
_GENERATED_LETTERS: Final = 5
_GENERATED_PREFIX_MAX: Final = 58
_PLAIN: Final = rendering.Form()
_NOT_KEPT: Final = "the status is what members and the engine report; it was not changed"
_TOLD_WHOLE: Final = frozenset(
    {
        "persistentvolumeclaims",
        "persistentvolumes",
        "podtemplates",
        "resourcequotas",
        "serviceaccounts",
        "services",
        "storageclasses.storage.k8s.io",
    }
)
"""Kinds whose DELETE returns the deleted object instead of a Status, as their registries in Kubernetes do."""

_MEMBERS_OWN: Final = ("Pod",)
"""Kinds whose status only members report. A Node of the control plane is not one: its creator writes its status."""


class _WriteRequest(Struct, frozen=True, kw_only=True):
    """A write request and what was parsed from it."""

    resource: Resource
    path: ApiPath
    query: requests.Query
    form: rendering.Form
    writer: mutations.Writer
    user: User
    method: str
    body_bytes: int


class WriteRequests:
    """Handle write requests. All public methods raise StatusError."""

    def __init__(
        self, write_api: WriteApi, plane: ControlPlane, clock_ms: Callable[[], int], authorizer: Authorizer
    ) -> None:
        self._write_api = write_api
        self._plane = plane
        self._authorizer = authorizer
        self._namespaces = Namespaces(write_api, plane, clock_ms)
        self._clock_ms = clock_ms

    async def create(self, request: Request, resource: Resource, api_path: ApiPath) -> Response:
        """Handle POST to a collection."""
        repeated: list[str] = []
        body = await requests.body(request, resource, repeated)
        metadata = dict(as_object(body.get("metadata")) or {})
        name = metadata.get("name")
        prefix = metadata.get("generateName")
        if not name and isinstance(prefix, str) and prefix:
            letters = "".join(secrets.choice(vocabulary.SAFE_LETTERS) for _ in range(_GENERATED_LETTERS))
            name = prefix[:_GENERATED_PREFIX_MAX] + letters
        if not isinstance(name, str) or not name:
            cause = Cause(
                field="metadata.name",
                reason="FieldValueRequired",
                message="Required value: name or generateName is required",
            )
            raise status_objects.invalid(resource, "", [cause])
        namespace = str(metadata.get("namespace") or "") if not api_path.namespace else api_path.namespace
        if resource.namespaced and not namespace:
            namespace = "default"
        if metadata.get("resourceVersion"):
            raise status_objects.bad_request("resourceVersion should not be set on objects to be created")
        metadata["name"] = name
        write = self._parsed(request, resource, api_path, name, namespace if resource.namespaced else "")
        _check_repeated(write, repeated)
        await loop_share.apart(write.body_bytes, _check_definition, resource, body)
        compute = mutations.creation(write.writer, {**body, "metadata": metadata})
        return await self._change(write, compute, code=201)

    async def replace(self, request: Request, resource: Resource, api_path: ApiPath) -> Response:
        """Handle PUT of an object or subresource."""
        write = self._parsed(request, resource, api_path, api_path.name, api_path.namespace)
        if api_path.part == "scale":
            scale = await requests.body(request, scales.SCALE)
            return await self._scale(write, scale_mutations.replaced(write.writer, scale))
        repeated: list[str] = []
        body = await requests.body(request, resource, repeated)
        _check_repeated(write, repeated)
        if api_path.part == "status":
            derived = await self._derived_status(write)
            return await self._status(write, status_mutations.replaced(write.writer, body, derived))
        await loop_share.apart(write.body_bytes, _check_definition, resource, body)
        return await self._change(write, mutations.replacement(write.writer, body), code=200)

    async def patch(self, request: Request, resource: Resource, api_path: ApiPath) -> Response:
        """Handle PATCH of an object or subresource."""
        write = self._parsed(request, resource, api_path, api_path.name, api_path.namespace)
        kind, content = requests.media_type(request), await requests.content(request)
        if api_path.part == "status":
            derived = await self._derived_status(write)
            patched = await _status_patched(write, kind, content, derived)
            return await self._status(write, patched)
        if kind in requests.APPLY_PATCHES:
            desired = await _applied(write, content)
            if api_path.part == "scale":
                return await self._scale(
                    write, scale_mutations.applied(write.writer, desired, force=write.query.force)
                )
            compute = mutations.applied(write.writer, desired, force=write.query.force)
            return await self._change(write, compute, code=200)
        if write.query.force:
            cause = causes.forbidden("force", "may not be specified for non-apply patch")
            raise status_objects.invalid_options("PatchOptions", cause)
        patch = await _patch(write, content)
        if api_path.part == "scale":
            return await self._scale(write, scale_mutations.patched(write.writer, kind, patch))
        return await self._change(write, mutations.patched(write.writer, kind, patch), code=200)

    async def delete(self, request: Request, resource: Resource, api_path: ApiPath) -> Response:
        """Handle DELETE of an object."""
        write = self._parsed(request, resource, api_path, api_path.name, api_path.namespace)
        options = await requests.options(request)
        dry_run = write.query.dry_run or options.get("dryRun") == ["All"]
        body = await self._remove(write, as_object(options.get("preconditions")) or {}, dry_run=dry_run)
        return rendering.answer(body)

    async def delete_all(
        self, request: Request, resource: Resource, api_path: ApiPath, fitting: list[Json]
    ) -> Response:
        """Handle DELETE of a collection; ``fitting`` are the objects that the selectors chose."""
        options = await requests.options(request)
        for value in fitting:
            metadata = as_object(value.get("metadata")) or {}
            name, namespace = str(metadata.get("name")), str(metadata.get("namespace") or "")
            write = self._parsed(request, resource, api_path, name, namespace)
            if await self._plane.is_bootstrap_object(resource, namespace, name):
                continue
            dry_run = write.query.dry_run or options.get("dryRun") == ["All"]
            await self._remove(write, {}, dry_run=dry_run)
        number = str(await self._plane.number())
        return rendering.answer(
            rendering.many(resource, fitting, _PLAIN, self._clock_ms(), {"resourceVersion": number})
        )

    async def _remove(self, write: _WriteRequest, conditions: Json, *, dry_run: bool) -> Json:
        """Delete an object; return the body of the response."""
        resource, target = write.resource, _target(write)
        reserved_objects.check(target, write.user)
        is_bootstrap = await self._plane.is_bootstrap_object(resource, target.namespace, target.name)
        if is_bootstrap or (resource.kind == "Namespace" and target.name in BUILT_IN_NAMESPACES):
            reason = (
                "this namespace may not be deleted"
                if resource.kind == "Namespace"
                else "it is a built-in object"
            )
            message = f'{resource.qualified} "{target.name}" is forbidden: {reason}'
            raise StatusError(403, "Forbidden", message, {"name": target.name, "kind": resource.plural})

        def precheck(live: Json) -> None:
            _check_conditions(resource, target.name, live, conditions)

        if target.route == "namespace" and not dry_run:
            result, removal = await self._namespaces.end(target, precheck)
        else:
            removal = Removal(target=target, precheck=precheck, now_ms=self._clock_ms())
            result = await self._write_api.change(removal, dry_run=dry_run, source=SOURCE)
        _check(result, resource, target.name)
        metadata = as_object(removal.outcome.get("metadata")) or {}
        if removal.is_marked or resource.qualified in _TOLD_WHOLE:
            shown = removal.outcome
            if result.resource_version and not removal.is_marked:
                shown = {**shown, "metadata": {**metadata, "resourceVersion": str(result.resource_version)}}
            return self._plane.shown(resource, shown)
        return status_objects.deleted(resource, target.name, str(metadata.get("uid", "")))

    async def _scale(self, write: _WriteRequest, compute: Compute) -> Response:
        value, _result = await self._carried_out(write, compute)
        return rendering.answer(scales.scale_of(write.resource, value), warnings=write.writer.warnings)

    async def _status(self, write: _WriteRequest, compute: Compute) -> Response:
        """Write a status, if clients may write that of this kind; else respond with a warning."""
        resource = write.resource
        route = kinds.route_of(versions.stored(resource).api_version, resource.kind)
        written = route in ("cluster", "configuration") or (
            route == "template" and resource.kind not in _MEMBERS_OWN and not kinds.refused(*_kind(resource))
        )
        if not written:
            return await self._unchanged(write)
        return await self._change(write, compute, code=200)

    async def _derived_status(self, write: _WriteRequest) -> status_mutations.DerivedStatus | None:
        """The engine's part of a template's status and its field owner; None for clusters, whose status is a fact."""
        if kinds.route_of(write.resource.api_version, write.resource.kind) == "cluster":
            return None
        value = await self._plane.get(write.resource, write.path.namespace, write.path.name)
        entries = as_list(managed_fields.in_object(value or {})) or []
        for entry in (as_object(entry) or {} for entry in entries):
            if field_owners.is_engines(entry) and field_owners.is_of_status(entry):
                owned = as_object((as_object(entry.get("fieldsV1")) or {}).get("f:status")) or {}
                status = as_object((value or {}).get("status")) or {}
                values = {name: item for name, item in status.items() if f"f:{name}" in owned}
                return status_mutations.DerivedStatus(status=values, entry=entry)
        return None

    async def _unchanged(self, write: _WriteRequest) -> Response:
        """Respond with the stored object and a warning that its status was not changed."""
        value = await self._plane.get(write.resource, write.path.namespace, write.path.name)
        if value is None:
            raise status_objects.not_found(write.resource, write.path.name)
        body = rendering.one(write.resource, value, write.form, self._clock_ms())
        return rendering.answer(body, warnings=[_NOT_KEPT])

    async def _change(self, write: _WriteRequest, compute: Compute, code: int) -> Response:
        if eviction_permission.is_binding(write.resource) and write.method in ("PUT", "PATCH"):
            return await self._allow_deletion(write, compute)
        value, result = await self._carried_out(write, compute)
        if result.action.startswith("created"):
            code = 201
        body = rendering.one(write.resource, value, write.form, self._clock_ms())
        return rendering.answer(body, code, write.writer.warnings)

    async def _allow_deletion(self, write: _WriteRequest, compute: Compute) -> Response:
        """Handle the one permitted change of a binding: allow deletion in clusters whose eviction waits for it."""
        resource, api_path = write.resource, write.path
        binding = await self._plane.get(resource, api_path.namespace, api_path.name)
        if binding is None:
            raise status_objects.not_found(resource, api_path.name)
        operation, desired = eviction_permission.allowance(resource, binding, compute)
        if operation.clusters:
            result = await self._write_api.change(operation, dry_run=write.query.dry_run, source=SOURCE)
            _check(result, resource, api_path.name)
            # Only the permission is recorded; the binding changes once its owner shard has decided.
            binding = desired
        body = rendering.one(resource, binding, write.form, self._clock_ms())
        return rendering.answer(body, warnings=write.writer.warnings)

    async def _carried_out(self, write: _WriteRequest, compute: Compute) -> tuple[Json, Result]:
        resource, target = write.resource, _target(write)
        if reason := kinds.refused(target.api_version, target.kind) or _not_written(resource):
            details: Json = {"name": target.name, "group": resource.group, "kind": resource.plural}
            message = f'{resource.qualified} "{target.name}" is forbidden: {reason}'
            raise StatusError(403, "Forbidden", message, details)
        reserved_objects.check(target, write.user)
        bootstrap = await self._plane.bootstrap.get(resource, target.namespace, target.name)

        known = None if write.user.is_master else await self._authorizer.rights()

        def admitted(live: Json | None) -> Json:
            # Check rights inside the computation, against the very version that is replaced.
            before = live or bootstrap
            value = compute(before if before is None else versions.shown(resource, before))
            if known is not None and before is None and write.method != "POST":
                _check_creation(write, known)
            escalation.check(resource, write.user, known, value, before)
            try:
                return versions.kept(resource, value)
            except versions.ConversionError as error:
                raise status_objects.bad_request(str(error)) from None

        sort = StatusChange if write.path.part == "status" else Change
        change = sort(target=target, compute=admitted, body_bytes=write.body_bytes)
        if isinstance(change, Change):
            change.resource = resource
        try:
            result = await self._write_api.change(change, dry_run=write.query.dry_run, source=SOURCE)
        except mutations.AheadError:
            # Another replica may have returned that version; after asking the log, this one knows it too.
            await self._plane.newest()
            result = await self._write_api.change(change, dry_run=write.query.dry_run, source=SOURCE)
        _check(result, resource, target.name)
        if result.action == "deleted" and target.namespace:
            # The object was terminating; its namespace may be too, and be empty now.
            await self._namespaces.finish(target.namespace)
        elif target.route == "namespace" and not write.query.dry_run:
            await self._namespaces.finish(target.name)
        if change.stored is not None and result.action == "created" and target.route == "template":
            # A new object has no status or claim yet, so the stored bytes are all that can be shown.
            return self._plane.shown(resource, object_changes.live_object(target, change.stored)), result
        value = await self._plane.current(resource, target.namespace, target.name)
        if value is not None and not write.query.dry_run and result.action != "deleted":
            return value, result
        return self._as_shown(versions.shown(resource, change.outcome), value, write), result

    def _as_shown(self, outcome: Json, current: Json | None, write: _WriteRequest) -> Json:
        """Render an object that was not stored (dry run, deletion), with the engine's labels and status."""
        resource, current_metadata = write.resource, as_object((current or {}).get("metadata")) or {}
        metadata = dict(as_object(outcome.get("metadata")) or {})
        for name in ("labels", "annotations"):
            marks = as_object(current_metadata.get(name)) or {}
            texts = {**(as_object(metadata.get(name)) or {})}
            texts |= {mark: text for mark, text in marks.items() if mark in object_changes.MARKS}
            if texts:
                metadata[name] = texts
        if "resourceVersion" in current_metadata:
            metadata["resourceVersion"] = current_metadata["resourceVersion"]
        new: Json = {
            "uid": str(uuid.uuid4()),
            "creationTimestamp": times.to_seconds_text(self._clock_ms()),
            "name": write.writer.name,
        }
        head: Json = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": new | metadata}
        is_kept = current is not None and "status" in current and write.path.part != "status"
        status: Json = {"status": current["status"]} if current is not None and is_kept else {}
        return self._plane.shown(resource, {**outcome, **head, **status})

    def _parsed(
        self, request: Request, resource: Resource, api_path: ApiPath, name: str, namespace: str
    ) -> _WriteRequest:
        query = requests.query(request)
        agent = managed_fields.name_of_agent(request.headers.get("user-agent", ""))
        writer = mutations.Writer(
            resource=resource,
            namespace=namespace,
            name=name,
            manager=query.field_manager or agent or "unknown",
            now_ms=self._clock_ms(),
            validation=query.validation,
            warnings=[],
            newest=self._plane.last_number,
            tolerated=self._write_api.tolerated,
        )
        form = rendering.form(request.headers.get("accept", ""), query.include)
        user = authentication.of(request)
        return _WriteRequest(
            resource=resource,
            path=api_path,
            query=query,
            form=form,
            writer=writer,
            user=user,
            method=request.method,
            body_bytes=bodies.announced(request),
        )


def _kind(resource: Resource) -> tuple[str, str]:
    return resource.api_version, resource.kind


def _target(write: _WriteRequest) -> wishes.Target:
    return wishes.Target(
        api_version=versions.stored(write.resource).api_version,
        kind=write.resource.kind,
        namespace=write.writer.namespace,
        name=write.writer.name,
    )


def _not_written(resource: Resource) -> str:
    """Why clients may not write Kubernetes Events, which are derived from the log; empty for other kinds."""
    return "events are told by the engine" if resource.kind == "Event" else ""


async def _status_patched(
    write: _WriteRequest, kind: str, content: bytes, derived: status_mutations.DerivedStatus | None
) -> Compute:
    if kind in requests.APPLY_PATCHES:
        desired = await _applied(write, content)
        return status_mutations.applied(write.writer, desired, force=write.query.force, derived=derived)
    return status_mutations.patched(write.writer, kind, await _patch(write, content), derived)


async def _patch(write: _WriteRequest, content: bytes) -> object:
    """Parse a JSON patch and check its duplicate fields; raises StatusError."""
    repeated: list[str] = []
    patch = await requests.patch_value(content, repeated)
    _check_repeated(write, repeated)
    return patch


async def _applied(write: _WriteRequest, content: bytes) -> Json:
    """Parse the object to apply and check its duplicate fields; raises StatusError."""
    repeated: list[str] = []
    desired = await requests.applied_object(content, repeated)
    _check_repeated(write, repeated)
    return desired


def _check_creation(write: _WriteRequest, known: Rights) -> None:
    """Raise StatusError if an apply or update creates the object and the user may not create it."""
    resource, writer = write.resource, write.writer
    act = Act(
        verb="create",
        group=resource.group,
        resource=resource.plural,
        namespace=writer.namespace,
        name=writer.name,
    )
    if not known.may(write.user, act):
        raise status_objects.forbidden_act(write.user.name, act)


def _check_repeated(write: _WriteRequest, paths: list[str]) -> None:
    """Refuse duplicate fields (fieldValidation=Strict), warn of them (Warn), or ignore them (Ignore)."""
    messages = [repeated_fields.message(path) for path in paths]
    if messages and write.query.validation == "Strict":
        raise status_objects.strict_decoding(write.resource, messages)
    if write.query.validation == "Warn":
        write.writer.warnings.extend(messages)


def _check_definition(resource: Resource, body: Json) -> None:
    """Raise StatusError for a CustomResourceDefinition whose kind could not be served."""
    if resource.kind == "CustomResourceDefinition":
        name = str((as_object(body.get("metadata")) or {}).get("name", ""))
        if wrong := list(definitions.faults(body)):
            raise status_objects.invalid(resource, name, wrong)
        try:
            custom_kinds.read(body)
        except custom_kinds.DefinitionError as error:
            cause = Cause(field=error.field, reason="FieldValueInvalid", message=error.reason)
            raise status_objects.invalid(resource, name, [cause]) from None


def _check_conditions(resource: Resource, name: str, live: Json, conditions: Json) -> None:
    metadata = as_object(live.get("metadata")) or {}
    for field, what in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        expected, actual = conditions.get(field), str(metadata.get(field, ""))
        if expected and expected != actual:
            raise status_objects.unwanted_deletion(resource, name, what, str(expected), actual)


def _check(result: Result, resource: Resource, name: str) -> None:
    """Raise StatusError if the write API did not carry out the change."""
    if result.problem is None:
        return
    match result.problem.verdict:
        case v if v == LATE:
            raise status_objects.conflict(resource, name)
        case v if v == NOT_FOUND:
            raise status_objects.not_found(resource, name)
        case _:
            raise status_objects.timed_out(f"{result.problem.reason}; check whether it was made, then retry")
