"""Save a plan, and apply it later if it still holds."""

from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from engine import private_files
from engine.cli import failures, kube_objects, options, results
from engine.cli.client import Reply
from engine.cli.plan import asking, changes_since
from engine.domain import bindings
from engine.plans.predictions import Prediction
from events import tracing
from events.json_values import Json, part

_SHOWN_MAX = 5
_REMEDY = "make the plan again, and look at it"


class SavedPlan(Struct, frozen=True, rename="camel"):
    """The requests to the Kubernetes API and the failures of a plan, its prediction, and its id (a UUID).

    ``generations`` are those of the objects whose resourceVersions the requests name, by path. The versions of
    clusters change with each report; a plan depends on their generations only.
    """

    requests: list[Json]
    failures: list[Json]
    horizon_ms: int
    prediction: Prediction
    id: str = ""
    generations: dict[str, object] = {}


class _Outcome(NamedTuple):
    """The predicted change of a workload: its clusters before and after, and its condition."""

    before: dict[str, int]
    after: dict[str, int]
    condition: str


def save(path: Path, plan: SavedPlan) -> None:
    """Write a plan to a file that only its owner may read, since it holds the objects; raises Failure if that fails."""
    try:
        private_files.write(path, msgspec.json.format(msgspec.json.encode(plan)))
    except OSError as error:
        raise failures.Failure(f"{path}: {error.strerror}", "use a writable file") from None


def apply(path: Path, server: options.Server) -> int:
    """Make the requests of a saved plan if they would still have the predicted effect; return the exit code.

    The effect is predicted again, so changes of objects that don't matter to the plan don't matter here. Raises Failure
    if the effect would be another one.
    """
    saved = read(path)
    if saved.failures:
        raise failures.Failure("a plan of failing clusters can't be applied", "plan a change of objects")
    with asking.PlanningClient(server.data) as client:
        requests = [_refreshed(client, saved, request) for request in saved.requests]
        _, prediction = asking.predicted(client, requests, [], saved.horizon_ms)
        if differing := _differences(saved.prediction, prediction):
            reason = "; ".join(_shortened(list(differing.values())))
            since = changes_since.changes_since(
                client, saved.prediction, prediction, list(differing)[:_SHOWN_MAX]
            )
            if since:
                reason += f"; changed since the plan: {', '.join(_shortened(since))}"
            raise failures.Failure(f"the plan no longer holds: {reason}", _REMEDY)
        made = [_made(client, saved, request) for request in saved.requests]
    return results.print_results(made, as_json=server.json)


def read(path: Path) -> SavedPlan:
    try:
        return msgspec.json.decode(path.read_bytes(), type=SavedPlan)
    except OSError as error:
        raise failures.Failure(f"{path}: {error.strerror}", "use a readable file") from None
    except msgspec.MsgspecError as error:
        remedy = "write one with: reballast plan … -o FILE"
        raise failures.Failure(f"{path} is no plan: {error}", remedy) from None


def _differences(planned: Prediction, now: Prediction) -> dict[str, str]:
    """Return how a prediction differs from the planned one, by workload."""
    before, after = _outcomes(planned), _outcomes(now)
    found: dict[str, str] = {}
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if old is not None and new is not None and old.before != new.before:
            found[key] = f"{key} is in {_clusters(new.before)} now, not in {_clusters(old.before)}"
        else:
            wanted, would = (_clusters(each.after) if each else "where it is" for each in (old, new))
            found[key] = f"{key} would come to {would}, not to {wanted}"
    return found


def _shortened(texts: list[str]) -> list[str]:
    more = len(texts) - _SHOWN_MAX
    return [*texts[:_SHOWN_MAX], *([f"{more} more"] if more > 0 else [])]


def _outcomes(prediction: Prediction) -> dict[str, _Outcome]:
    """Return the outcomes of the workloads that move or can't be placed; a plan does not depend on those that stay."""
    return {
        each.key: _Outcome(each.before, each.after, each.condition)
        for each in prediction.changed
        if each.before != each.after or each.condition not in {"", bindings.SUCCESS}
    }


def _clusters(clusters: dict[str, int]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in sorted(clusters.items())) or "no cluster"


def _refreshed(client: asking.PlanningClient, saved: SavedPlan, request: Json) -> Json:
    """Return a request that names the object's present version; raises Failure if the object was edited since."""
    if not asking.named_version(request):
        return request
    path = str(request["path"]).partition("?")[0]
    live = client.kubernetes("GET", path).body
    if part(live, "metadata").get("generation") != saved.generations.get(path):
        raise failures.Failure(
            f"the plan no longer holds: {path.rpartition('/')[2]} was edited since", _REMEDY
        )
    body = part(request, "body")
    version = {"resourceVersion": part(live, "metadata").get("resourceVersion")}
    return {**request, "body": {**body, "metadata": {**part(body, "metadata"), **version}}}


def _made(client: asking.PlanningClient, saved: SavedPlan, planned: Json) -> Json:
    """Make a request, in the trace of its plan; return its result."""
    reply, tries = _sent(client, _refreshed(client, saved, planned), saved.id), 1
    while kube_objects.verdict(reply) == kube_objects.LATE and tries < kube_objects.TRIES:
        reply, tries = _sent(client, _refreshed(client, saved, planned), saved.id), tries + 1
    return _result(planned, reply)


def _sent(client: asking.PlanningClient, request: Json, plan_id: str) -> Reply:
    path, _, query = str(request["path"]).partition("?")
    headers = {"content-type": str(request["contentType"])} if "contentType" in request else {}
    if plan_id:
        trace = tracing.of_plan(plan_id)
        headers |= {"traceparent": trace.parent, "tracestate": trace.state}
    return client.make(str(request["method"]), path, request.get("body"), query=query, headers=headers)


def _result(request: Json, reply: Reply) -> Json:
    details = part(reply.body, "details")
    kind = str(details.get("kind") or reply.body.get("kind")).lower()
    name = str(details.get("name") or part(reply.body, "metadata").get("name", ""))
    result: Json = {"resource": kind, "name": name}
    if reply.is_refusal:
        return {**result, "problems": [{"reason": str(reply.body.get("message", ""))}]}
    action = {"POST": "created", "DELETE": "deleted"}.get(str(request["method"]), "configured")
    return {**result, "action": action, "warnings": reply.warnings}
