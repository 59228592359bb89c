"""Save a plan, and apply it later if it still holds."""

from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from engine import private_files
from engine.cli import failures, options, results
from engine.cli.plan import asking
from engine.plans.predictions import Prediction
from events.json_values import Json, part

_SHOWN_MAX = 5
_REMEDY = "make the plan again, and look at it"


class SavedPlan(Struct, frozen=True, rename="camel"):
    """The requests to the Kubernetes API and the failures of a plan, and its prediction."""

    requests: list[Json]
    failures: list[Json]
    horizon_ms: int
    prediction: Prediction


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
    saved = _read(path)
    if saved.failures:
        raise failures.Failure("a plan of failing clusters can't be applied", "plan a change of objects")
    with asking.PlanningClient(server.data) as client:
        _, prediction = asking.predicted(client, saved.requests, [], saved.horizon_ms)
        if differing := _differences(saved.prediction, prediction):
            raise failures.Failure(f"the plan no longer holds: {'; '.join(differing)}", _REMEDY)
        made = [_made(client, request) for request in saved.requests]
    return results.print_results(made, as_json=server.json)


def _read(path: Path) -> SavedPlan:
    try:
        return msgspec.json.decode(path.read_bytes(), type=SavedPlan)
    except OSError as error:
        raise failures.Failure(f"{path}: {error.strerror}", "use a readable file") from None
    except msgspec.MsgspecError as error:
        remedy = "write one with: reballast plan … -o FILE"
        raise failures.Failure(f"{path} is no plan: {error}", remedy) from None


def _differences(planned: Prediction, now: Prediction) -> list[str]:
    """Return how a prediction differs from the planned one, by workload."""
    before, after = _outcomes(planned), _outcomes(now)
    found: list[str] = []
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if old is not None and new is not None and old.before != new.before:
            found.append(f"{key} is in {_clusters(new.before)} now, not in {_clusters(old.before)}")
        else:
            wanted, would = (_clusters(each.after) if each else "where it is" for each in (old, new))
            found.append(f"{key} would come to {would}, not to {wanted}")
    more = len(found) - _SHOWN_MAX
    return [*found[:_SHOWN_MAX], *([f"{more} more"] if more > 0 else [])]


def _outcomes(prediction: Prediction) -> dict[str, _Outcome]:
    return {each.key: _Outcome(each.before, each.after, each.condition) for each in prediction.changed}


def _clusters(clusters: dict[str, int]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in sorted(clusters.items())) or "no cluster"


def _made(client: asking.PlanningClient, request: Json) -> Json:
    """Make a request; return its result."""
    path, _, query = str(request["path"]).partition("?")
    headers = {"content-type": str(request["contentType"])} if "contentType" in request else None
    reply = client.make(str(request["method"]), path, request.get("body"), query=query, headers=headers)
    details = part(reply.body, "details")
    kind = str(details.get("kind") or reply.body.get("kind")).lower()
    name = str(details.get("name") or part(reply.body, "metadata").get("name", ""))
    result: Json = {"resource": kind, "name": name}
    if reply.is_refusal:
        return {**result, "problems": [{"reason": str(reply.body.get("message", ""))}]}
    action = {"POST": "created", "DELETE": "deleted"}.get(str(request["method"]), "configured")
    return {**result, "action": action, "warnings": reply.warnings}
