"""Save a plan, and apply it later if its effect is still the same; if not, name the changes that affect the plan."""

import itertools
import shlex
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from engine import private_files
from engine.cli import failures, kube_objects, next_commands, options, output, results, server_reads
from engine.cli.client import Client, Reply
from engine.cli.kube_objects import KubeObjects, Target
from engine.cli.plan import planning_client
from engine.cli.plan.planning_client import PlanningClient, Request
from engine.cli.results import Result
from engine.domain import bindings
from engine.http import summaries
from engine.http.query.response_types import Entry
from engine.kubeapi.schema.resources import ApiPath, parse_path
from engine.plans.predictions import Prediction
from engine.plans.questions import Failure
from events import catalogue, clusters, topics, tracing
from events.json_values import DECODING_ERRORS, Json, as_text, at

_ACTIONS: Final = {"POST": "created", "DELETE": "deleted"}
_MORE: Final = "{} more"
_REMEDY: Final = "create the plan again, and check it"
_UNCHANGED: Final = "Nothing changes: the objects already are as requested."
_READ_MAX: Final = 10_000
_REPORTS: Final = catalogue.types_of(
    clusters.CapacityReported,
    clusters.ClusterHealthChanged,
    clusters.ClusterApisReported,
    clusters.ClusterConditionsReported,
)
"""Event types of clusters' periodic reports; a report is named as a change only if it caused a decision."""


class _OutdatedError(failures.Failure):
    """The plan would no longer have the predicted effect, or its basis has changed; the message has the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the plan no longer holds: {reason}", _REMEDY)


class SavedPlan(Struct, frozen=True, rename="camel"):
    """The requests to the Kubernetes API and the failing clusters of a plan, its prediction, and its id (a UUID).

    ``bases`` are the fields from which each request was computed. They are compared instead of resourceVersions,
    which change with each report of a cluster. A plan without changes has no prediction.
    """

    requests: list[Request]
    bases: list[Json]
    failures: list[Failure]
    horizon_ms: int
    prediction: Prediction | None
    id: str = ""

    def __post_init__(self) -> None:
        if len(self.bases) != len(self.requests):
            raise ValueError("each request needs its basis")
        if self.prediction is None and (self.requests or self.failures):
            raise ValueError("a change needs its prediction")


class _Outcome(NamedTuple):
    """The predicted change of a workload: its clusters before and after, and its condition."""

    before: dict[str, int]
    after: dict[str, int]
    condition: str


def save(path: Path, plan: SavedPlan) -> None:
    """Write a plan to a file that only its owner may read, since it holds the objects; raises Failure if that fails."""
    with failures.convert(OSError, "use a writable file", where=path):
        private_files.write(path, msgspec.json.format(msgspec.json.encode(plan)))


def apply(path: Path, server: options.Server) -> int:
    """Make the requests of a saved plan if they would still have the predicted effect; return the exit code.

    The effect is predicted again, so later changes of objects that it does not depend on are allowed. Raises
    Failure if the effect would be different.
    """
    saved = read(path)
    if saved.failures:
        raise failures.Failure("a plan of failing clusters can't be applied", "plan a change of objects")
    if saved.prediction is None:
        show_unchanged(as_json=server.json)
        return failures.OK
    with PlanningClient(server.data) as client:
        try:
            _check(client, saved, saved.prediction)
        except _OutdatedError:
            if (
                applied := next(server_reads.entries(client, "log", plan=saved.id), None)
                if saved.id
                else None
            ):
                raise failures.Failure(
                    f"the plan was applied already, at number {applied.number} of the log",
                    next_commands.hint(
                        "compare it with what happened", f"plan check {shlex.quote(str(path))}"
                    ),
                ) from None
            raise
        made = results.carry_out(_make_all(client, saved), as_json=server.json)
    return results.print_results(made, as_json=server.json)


def _check(client: PlanningClient, saved: SavedPlan, expected: Prediction) -> None:
    """Raise _OutdatedError if the plan's effect has changed, or another client edited the fields it is based on."""
    for request, basis in zip(saved.requests, saved.bases, strict=True):
        _check_unedited(client, request, basis)
    _, prediction = planning_client.predict(client, saved.requests, [], saved.horizon_ms)
    if differing := _differences(expected, prediction):
        reason = "; ".join(output.shortened(list(differing.values()), _MORE))
        since = _changes_since(client, expected, prediction, list(differing)[: output.SHOWN_MAX])
        if since:
            reason += f"; changed since the plan: {', '.join(output.shortened(since, _MORE))}"
        raise _OutdatedError(reason)


def show_unchanged(*, as_json: bool) -> None:
    """Print that a plan changes nothing."""
    if as_json:
        output.json({"state": "done", "reason": _UNCHANGED})
    else:
        output.print_line(_UNCHANGED)


def read(path: Path) -> SavedPlan:
    remedy = "write one with: reballast plan … -o FILE"
    with (
        failures.convert(OSError, "use a readable file", where=path),
        failures.convert(DECODING_ERRORS, remedy, where=f"{path} is not a plan"),
    ):
        return msgspec.json.decode(path.read_bytes(), type=SavedPlan)


def _differences(planned: Prediction, now: Prediction) -> dict[str, str]:
    """Return how a prediction differs from the planned one, by workload."""
    before, after = _outcomes(planned), _outcomes(now)
    result: dict[str, str] = {}
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if old is not None and new is not None and old.before != new.before:
            result[key] = f"{key} is in {_clusters(new.before)} now, not in {_clusters(old.before)}"
        else:
            predicted, would = (
                _clusters(outcome.after) if outcome else "its present clusters" for outcome in (old, new)
            )
            result[key] = f"{key} would be placed in {would}, not in {predicted}"
    return result


def _outcomes(prediction: Prediction) -> dict[str, _Outcome]:
    """Return the outcomes of the workloads that move or can't be placed; a plan does not depend on those that stay."""
    return {
        change.key: _Outcome(change.before, change.after, change.condition)
        for change in prediction.changed
        if change.before != change.after or change.condition not in {"", bindings.SUCCESS}
    }


def _clusters(clusters: dict[str, int]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in sorted(clusters.items())) or "no cluster"


def _check_unedited(client: PlanningClient, request: Request, basis: Json) -> None:
    """Raise _OutdatedError if another client edited the fields from which a request was computed."""
    if basis != client.basis(request):
        name = request.object_path.rpartition("/")[2]
        raise _OutdatedError(f"{name} was edited since")


def _make_all(client: PlanningClient, saved: SavedPlan) -> Iterator[Result]:
    """Make the requests of a plan, and yield their results."""
    objects, written = KubeObjects(client), set[str]()
    for request, basis in zip(saved.requests, saved.bases, strict=True):
        path = request.object_path
        reply, tries = None, 0
        while reply is None or (
            kube_objects.verdict(reply) == kube_objects.LATE and tries < kube_objects.TRIES
        ):
            if path not in written:
                _check_unedited(client, request, basis)
            reply, tries = _sent(client, _refreshed(client, request), saved.id), tries + 1
        written.add(path)
        action = _ACTIONS.get(request.method, "configured")
        yield kube_objects.result(_target(objects, request), action, reply)


def _target(objects: KubeObjects, request: Request) -> Target:
    """Return the object of a request; raises Failure if its kind is unknown."""
    path = parse_path(request.object_path) or ApiPath(group="", version="", plural="")
    name = as_text(at(request.body, "metadata", "name")) if request.method == "POST" else unquote(path.name)
    kind = f"{path.plural}.{path.group}" if path.group else path.plural
    return objects.target(kind, unquote(path.namespace), name)


def _refreshed(client: PlanningClient, request: Request) -> Request:
    """Return the request with the present resourceVersion of its object, if it names a resourceVersion."""
    if not request.version:
        return request
    live = client.kubernetes("GET", request.object_path).body
    return request.at_version(as_text(at(live, "metadata", "resourceVersion")))


def _sent(client: PlanningClient, request: Request, plan_id: str) -> Reply:
    headers: dict[str, str] = {}
    if plan_id:
        trace = tracing.of_plan(plan_id)
        headers = {"traceparent": trace.parent, "tracestate": trace.state}
    return client.make(request, headers)


def _changes_since(
    client: Client, planned: Prediction, now: Prediction, workloads: Collection[str]
) -> list[str]:
    """Return the changes since a plan that concern these workloads, in log order.

    These are changes to the workloads' templates, changes that caused decisions about the workloads, and changes to
    clusters that the workloads use. If there are none, return all changes to policies and clusters.
    """
    history = [entry for key in workloads for entry in _records(client, f"timeline/{key}", planned.number)]
    own = [entry for entry in history if _topic(entry) == topics.SPECS]
    facts = [
        entry
        for topic in topics.FACT_TOPICS
        for entry in _records(client, "log", planned.number, topic=topic)
    ]
    causes = {entry.cause for entry in history}
    names = _clusters_of(planned, workloads) | _clusters_of(now, workloads)
    lasting = [entry for entry in facts if entry.type not in _REPORTS]
    matters = [entry for entry in facts if entry.position in causes]
    matters += [entry for entry in lasting if _topic(entry) == topics.CLUSTERS and entry.key in names]
    return _newest_changes([*own, *matters] or lasting)


def _records(client: Client, path: str, after: int, **query: str) -> Iterable[Entry]:
    return itertools.islice(server_reads.entries(client, path, start=after, **query), _READ_MAX)


def _topic(entry: Entry) -> str:
    return entry.position.partition("/")[0]


def _clusters_of(prediction: Prediction, workloads: Collection[str]) -> set[str]:
    """Return the clusters that these workloads are assigned to before or after the predicted change."""
    return {
        name
        for change in prediction.changed
        if change.key in workloads
        for name in (*change.before, *change.after)
    }


def _newest_changes(entries: Iterable[Entry]) -> list[str]:
    """Return a text for the newest record of each event type about each object, in log order."""
    newest: dict[tuple[str, str], int] = {}
    for entry in entries:
        change = entry.key, summaries.event_name(entry.type)
        newest[change] = max(entry.number, newest.get(change, 0))
    ordered = sorted(newest.items(), key=lambda item: item[1])
    return [f"{event} of {key} at number {number}" for (key, event), number in ordered]
