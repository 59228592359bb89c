"""Request a plan from the server: the writes of a command are collected instead of sent."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, urlencode

import msgspec

from engine.cli import failures, output
from engine.cli.client import Client, Reply
from engine.cli.plan import planned_changes
from engine.plans.predictions import Prediction
from events.json_values import Json, as_object, at, object_at

_READS: Final = ("GET", "HEAD")
_FIRST_POLL_S: Final = 0.02
_POLL_S: Final = 0.2


class PlanningClient(Client):
    """A client whose writes to the Kubernetes API are dry runs; ``requests`` are those for the plan, in order.

    Reads see what the requests so far would change. A write that depends on an earlier request is not sent as a
    dry run, because the server lacks that request's result; the plan itself checks the write.
    """

    def __init__(self, directory: Path | None, *, is_local: bool = False) -> None:
        super().__init__(directory, is_local=is_local)
        self.requests: list[Json] = []
        self.bases: list[Json] = []
        """For each request the fields that it was computed from, as ``basis`` returns them."""

        self._changes = planned_changes.PlannedChanges()

    def kubernetes(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a read as it is, and a write as a dry run; see ``Client.kubernetes``."""
        if method in _READS:
            planned = self._changes.read(path)
            return planned or self._changes.with_kinds(
                path, super().kubernetes(method, path, body, query=query, headers=headers)
            )
        reply = self._changes.computed(method, path, body)
        if reply is None:
            dry_run = {**(query or {}), "dryRun": "All"}
            reply = super().kubernetes(method, path, body, query=dry_run, headers=headers)
        if not reply.is_refusal:
            self._changes.take(method, path, reply.body)
            request: Json = {"method": method, "path": f"{path}?{urlencode(query)}" if query else path}
            if headers and "content-type" in headers:
                request["contentType"] = headers["content-type"]
            if body is not None:
                request["body"] = body
            self.requests.append(request)
            self.bases.append(self.basis(request))
        return reply

    def basis(self, request: Json) -> Json:
        """Return the stored fields from which a request that names a resourceVersion was computed; {} for others.

        For a patch these are the fields that it sets, for a replacement the object's generation. Other fields of
        Clusters are left out, because members report them.
        """
        if not named_version(request):
            return {}
        live = super().kubernetes("GET", str(request["path"]).partition("?")[0]).body
        if request["method"] != "PATCH":
            return {"metadata": {"generation": at(live, "metadata", "generation")}}
        return _set_fields(object_at(_unversioned(request), "body"), live)

    def make(
        self, method: str, path: str, body: object, *, query: str, headers: Mapping[str, str] | None
    ) -> Reply:
        """Make a planned request for real; see ``Client.kubernetes``."""
        return super().kubernetes(method, path, body, query=dict(parse_qsl(query)), headers=headers)


def named_version(request: Json) -> str:
    """Return the resourceVersion that a request names; empty if it names none."""
    body = object_at(request, "body")
    return str(object_at(body, "metadata").get("resourceVersion", ""))


def _set_fields(patch: Json, value: Json) -> Json:
    """Return the fields of an object that a merge patch sets; None for those that are absent."""
    fields: Json = {}
    for name, item in patch.items():
        inner, present = as_object(item), as_object(value.get(name))
        fields[name] = value.get(name) if inner is None or present is None else _set_fields(inner, present)
    return fields


def _unversioned(request: Json) -> Json:
    """Return a request without the resourceVersion of its object."""
    if not named_version(request):
        return request
    body = object_at(request, "body")
    metadata = {
        name: value for name, value in object_at(body, "metadata").items() if name != "resourceVersion"
    }
    return {**request, "body": {**body, "metadata": metadata}}


def predicted(
    client: Client,
    requests: list[Json],
    failed: list[Json],
    horizon_ms: int,
    show_progress: Callable[[str], None] = output.progress,
    as_of: str = "",
    **drill: Json,
) -> tuple[Json, Prediction]:
    """Return a plan of the server as JSON, and its prediction; shows the progress on a terminal.

    ``drill`` are further fields of the request: the ``outage`` of a failure drill. Raises Failure if it can't be
    made. An interrupted command ends the plan on the server.
    """
    # A cluster's version changes with each report, and an object had other versions at an earlier position.
    requests = [_unversioned(each) for each in requests]
    body: Json = {"requests": requests, "failures": failed, "horizonMs": horizon_ms, "asOf": as_of, **drill}
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
