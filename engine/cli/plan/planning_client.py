"""Request a plan from the server: the writes of a command are collected instead of sent."""

import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlencode

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs

from engine.cli import failures, options, output, server_reads
from engine.cli.client import Client, Parameter, Reply
from engine.kubeapi.patching import patches
from engine.kubeapi.schema import custom_kinds
from engine.kubeapi.schema.resources import Resource, parse_path
from engine.plans import drills, questions
from engine.plans.predictions import Prediction
from events import times
from events.json_values import Json, as_object, as_text, at, object_at, objects_at
from events.kube_objects import KubeObject

_T = TypeVar("_T")
_READS: Final = ("GET", "HEAD")
_FIRST_POLL_S: Final = 0.02
_POLL_S: Final = 0.2
_NAMESPACES: Final = "api/v1/namespaces"
_DEFINITIONS: Final = "apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Request(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A write to the Kubernetes API; ``path`` includes the query and has no leading slash."""

    method: str
    path: str
    content_type: str = ""
    body: Json | UnsetType = UNSET

    @property
    def object_path(self) -> str:
        return self.path.partition("?")[0]

    @property
    def version(self) -> str:
        """The resourceVersion that the request names; empty if it names none."""
        return as_text(at(self.body, "metadata", "resourceVersion"))

    def unversioned(self) -> "Request":
        """Return the request without the resourceVersion of its object."""
        if not self.version:
            return self
        metadata = dict(object_at(self.body, "metadata"))
        del metadata["resourceVersion"]
        return self._with_metadata(metadata)

    def at_version(self, version: str) -> "Request":
        """Return the request with this resourceVersion in the metadata of its object."""
        return self._with_metadata({**object_at(self.body, "metadata"), "resourceVersion": version})

    def _with_metadata(self, metadata: Json) -> "Request":
        return structs.replace(self, body={**object_at(self.body), "metadata": metadata})


class PlanningClient(Client):
    """A client whose writes to the Kubernetes API are dry runs; ``requests`` are those for the plan, in order.

    Reads of an object return it as the requests so far would change it. A write that depends on an earlier
    request is not sent as a dry run, because the server lacks that request's result; the plan itself checks the write.
    If the plan starts ``as_of`` an earlier state, objects are read as they were then, and no write is sent at all.
    """

    def __init__(self, directory: Path | None, *, as_of: str = "") -> None:
        super().__init__(directory)
        self.as_of = as_of
        self.requests: list[Request] = []
        self.bases: list[Json] = []
        """For each request the fields that it was computed from, as ``basis`` returns them."""

        self._changes = _PlannedChanges()

    def get(self, path: str, kind: type[_T], /, **query: Parameter) -> _T:
        """GET a query as of the start of the plan; see ``Client.get``."""
        return super().get(path, kind, **{"asOf": self.as_of, **query})

    def kubernetes(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        query: Mapping[str, Parameter] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Answer a read with the planned changes, and send a write as a dry run; see the class."""
        if method in _READS:
            planned = self._changes.read(path) or self._as_of_reply(path)
            return planned or self._changes.with_kinds(
                path, super().kubernetes(method, path, body, query=query, headers=headers)
            )
        reply = self._changes.computed(method, path, body, is_past=bool(self.as_of))
        if reply is None:
            dry_run = {**(query or {}), "dryRun": "All"}
            reply = super().kubernetes(method, path, body, query=dry_run, headers=headers)
        if not reply.is_refusal:
            self._changes.take(method, path, KubeObject(reply.body))
            request = Request(
                method=method,
                path=f"{path}?{urlencode(query)}" if query else path,
                content_type=(headers or {}).get("content-type", ""),
                body=UNSET if body is None else body,
            )
            self.requests.append(request)
            self.bases.append(self.basis(request))
        return reply

    def basis(self, request: Request) -> Json:
        """Return the stored fields from which a request was computed; {} if it names no resourceVersion.

        For a patch these are the fields that it sets, for a replacement the object's generation. Other fields of
        Clusters are left out, because members report them.
        """
        if not request.version:
            return {}
        live = (self._as_of_reply(request.object_path) or super().kubernetes("GET", request.object_path)).body
        if request.method != "PATCH":
            return {"metadata": {"generation": at(live, "metadata", "generation")}}
        return _set_fields(object_at(request.unversioned().body), live)

    def _as_of_reply(self, path: str) -> Reply | None:
        """Return the answer to a read of an object as of the earlier state.

        Return None for other reads, and if the plan starts from the present state.
        """
        parsed = parse_path(path) if self.as_of else None
        if parsed is None or not parsed.name:
            return None
        kind = server_reads.kind_of(f"{parsed.plural}.{parsed.group}".rstrip("."), self)
        selection = server_reads.Selection(unquote(parsed.namespace), unquote(parsed.name), as_of=self.as_of)
        stored = server_reads.documents(self, kind, selection, is_awaited=True)
        return self._changes.start_from(path, stored[0] if stored else None)

    def make(self, request: Request, headers: Mapping[str, str]) -> Reply:
        """Send a planned request without dry run, with additional headers; see ``Client.kubernetes``."""
        path, _, query = request.path.partition("?")
        sent = {"content-type": request.content_type} if request.content_type else {}
        body = None if request.body is UNSET else request.body
        return super().kubernetes(
            request.method, path, body, query=dict(parse_qsl(query)), headers=sent | {**headers}
        )


def _set_fields(patch: Json, value: Json) -> Json:
    """Return the fields of ``value`` that a merge patch sets, with None for absent ones."""
    fields: Json = {}
    for name, item in patch.items():
        inner, present = as_object(item), as_object(value.get(name))
        fields[name] = value.get(name) if inner is None or present is None else _set_fields(inner, present)
    return fields


def read_horizon(text: str) -> int:
    """Convert a duration to milliseconds; raises Failure for any other text, and beyond the maximum of plans."""
    horizon_ms = options.read_duration("--horizon", text)
    if horizon_ms > questions.HORIZON_MS_MAX:
        days = questions.HORIZON_MS_MAX // times.DAY_MS
        raise failures.usage(f"--horizon: {text!r} is longer than {days} days", f"give at most {days}d")
    return horizon_ms


def predict(
    client: Client,
    requests: list[Request],
    failed: list[questions.Failure],
    horizon_ms: int,
    show_progress: Callable[[str], None] = output.progress,
    as_of: str = "",
    outage: drills.Outage | None = None,
) -> tuple[Json, Prediction]:
    """Make a plan on the server; return it as JSON and its prediction. Shows the progress on a terminal.

    For a drill, ``outage`` is the outage to plan and ``failed`` is empty. Raises Failure if the plan cannot be made.
    An interrupted command deletes the plan on the server.
    """
    # Send no resourceVersions: a Cluster's changes with each report, and at an earlier position of the log
    # the objects have different ones.
    body: Json = {
        "requests": [request.unversioned() for request in requests],
        "failures": failed,
        "horizonMs": horizon_ms,
        "asOf": as_of,
        "outage": outage,
    }
    plan = client.post("plans", body, Json)
    path = f"plans/{plan['id']}"
    pause_s = _FIRST_POLL_S
    try:
        while plan.get("state", "running") == "running":
            show_progress(f"planning: {int(str(plan.get('passedMs', 0))) // 1_000} s of virtual time")
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, _POLL_S)
            plan = client.get(path, Json)
    except BaseException:
        client.delete(path)
        raise
    finally:
        show_progress("")
    if plan["state"] == "failed":
        raise failures.Failure(f"the plan could not be made: {plan.get('reason')}")
    prediction = msgspec.convert(plan.get("prediction"), Prediction)
    return plan, prediction


class _PlannedChanges:
    """The objects that the requests of a plan change, by path."""

    def __init__(self) -> None:
        self._objects: dict[str, KubeObject | None] = {}
        self._created: set[str] = set()

    def read(self, path: str) -> Reply | None:
        """Return the answer to a read of an object that the plan changes or whose kind it defines; None for others."""
        if path not in self._objects and not self._is_of_defined_kind(path):
            return None
        return _answer(self._objects.get(path))

    def start_from(self, path: str, value: KubeObject | None) -> Reply:
        """Store an object as it is before the plan, None if it does not exist; return the answer to its read."""
        self._objects.setdefault(path, value)
        return _answer(value)

    def with_kinds(self, path: str, reply: Reply) -> Reply:
        """Return the reply to a discovery request, with the kinds that the plan defines in the group and version."""
        kinds = [
            {"kind": kind.kind, "name": kind.plural, "namespaced": kind.namespaced}
            for kind in self._defined()
            if path == f"apis/{kind.api_version}"
        ]
        if not kinds:
            return reply
        known = [] if reply.is_refusal else objects_at(reply.body, "resources")
        return Reply(HTTPStatus.OK, {**reply.body, "resources": [*known, *kinds]}, [])

    def computed(self, method: str, path: str, body: Json | None, *, is_past: bool) -> Reply | None:
        """Return the answer to a write that depends on an earlier request; with ``is_past``, the answer to any write.

        Return None for other writes, which are sent to the server.
        """
        name = _object_path(method, path, KubeObject(body or {}))
        if not is_past and name not in self._objects and not self._is_within_created(path):
            return None
        live = self._objects.get(name)
        value = (
            patches.merge_patched(live.document if live is not None else None, body)
            if method == "PATCH"
            else body
        )
        return Reply(HTTPStatus.OK, object_at(value), [])

    def take(self, method: str, path: str, value: KubeObject) -> None:
        """Store the state of an object after a request."""
        name = _object_path(method, path, value)
        self._objects[name] = None if method == "DELETE" else value
        if method == "POST":
            self._created.add(name)

    def _is_within_created(self, path: str) -> bool:
        """Whether the plan creates the namespace or defines the kind of an object."""
        namespaces = [path for path in self._created if path.startswith(f"{_NAMESPACES}/")]
        names = [path.removeprefix(_NAMESPACES) for path in namespaces]
        return any(f"/namespaces{name}/" in path for name in names) or self._is_of_defined_kind(path)

    def _is_of_defined_kind(self, path: str) -> bool:
        return any(
            path.startswith(f"apis/{kind.api_version}/") and kind.plural in path.split("/")
            for kind in self._defined()
        )

    def _defined(self) -> list[Resource]:
        created = [path for path in self._created if path.startswith(f"{_DEFINITIONS}/")]
        return [kind for path in created for kind in custom_kinds.read(self._objects[path] or KubeObject({}))]


def _answer(value: KubeObject | None) -> Reply:
    """Return the answer to a read of an object, None if it does not exist."""
    return Reply(HTTPStatus.NOT_FOUND, {}, []) if value is None else Reply(HTTPStatus.OK, value.document, [])


def _object_path(method: str, path: str, value: KubeObject) -> str:
    """Return the path of the object of a write."""
    if method != "POST":
        return path
    return f"{path}/{quote(value.name, safe='')}"
