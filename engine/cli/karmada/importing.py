"""``import``: take over an existing Karmada's objects and placements, so that nothing moves."""

import asyncio
import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Final

from cyclopts import Parameter
from msgspec import Struct

from engine.agent.api_errors import ApiError
from engine.agent.kubeconfigs import KubeconfigError
from engine.cli import apply, failures, kube_objects, options, output, server_reads
from engine.cli.client import Client
from engine.cli.karmada import serving, states
from engine.cli.karmada.states import State
from engine.cli.kube_objects import KubeObjects, Target
from events.json_values import Json, as_objects, part

_AT_ONCE: Final = 8
_SETTLED: Final = 0
_DIFFERENT: Final = 2
_WAIT_S: Final = 60.0
_STILL_S: Final = 3.0
"""Without a change for this time, the rest is not waited for."""

_POLL_S: Final = 0.2


class Moved(Struct, rename="camel"):
    """A binding that is placed otherwise than before; ``after`` is None if it does not exist."""

    binding: str
    before: dict[str, int]
    after: dict[str, int] | None


class Report(Struct, rename="camel"):
    """Objects copied by kind, those refused with their reasons, and the bindings that are not as before.

    ``notes`` say what else is not taken over.
    """

    copied: dict[str, int]
    refused: list[Json]
    bindings: int
    moved: list[Moved]
    notes: list[str]


def import_karmada(
    place: serving.Source,
    *,
    dry_run: Annotated[bool, Parameter(name="--dry-run", negative=(), help="Check, write nothing.")] = False,
    scheduler: Annotated[
        str, Parameter(help="Decide for the policies with this schedulerName, as for reballast.")
    ] = "",
    server: options.Server = options.SERVER,
) -> int:
    """Copy clusters, policies, templates and their placements into the running server."""
    try:
        state = asyncio.run(states.of_api(place.access()))
    except (ApiError, KubeconfigError) as error:
        raise failures.Failure(
            f"Karmada's API: {error}", "use a kubeconfig whose user can list its objects"
        ) from None
    if scheduler:
        state = states.taken_over(state, scheduler)
    with server.client() as client:
        report = copied(KubeObjects(client), state, dry_run=dry_run)
        report.notes += _without_agents(state)
        if not dry_run:
            report.moved = moved(client, state)
    if server.json:
        output.json(report)
    else:
        _show(report)
    return _DIFFERENT if report.refused or report.moved else _SETTLED


def _without_agents(state: State) -> list[str]:
    names = [states.place_of(value)[1] for value in state.objects if value["kind"] == "Cluster"]
    text = "clusters have no agent here, so nothing is changed in them: reballast join"
    return [f"{len(names)} {text} {names[0]} --kubeconfig FILE"] if names else []


def copied(objects: KubeObjects, state: State, *, dry_run: bool) -> Report:
    """Write the objects, several of a kind at a time; those that are there already are made equal."""
    report = Report({}, [], len(state.placements), [], [*state.notes])
    done = 0

    def write(value: Json) -> Json:
        return _copied(objects, value, dry_run=dry_run)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for kind, values in itertools.groupby(state.objects, lambda value: str(value["kind"])):
            for result in pool.map(write, values):
                done += 1
                output.progress(f"copying: {done} of {len(state.objects)} objects")
                if result.get("problems"):
                    report.refused.append(result)
                else:
                    report.copied[kind] = report.copied.get(kind, 0) + 1
    output.progress("")
    return report


def _copied(objects: KubeObjects, value: Json, *, dry_run: bool) -> Json:
    """Write an object, and the status of a cluster; return the result."""
    chosen = kube_objects.Options("Warn", dry_run)
    kind, metadata = str(value["kind"]), part(value, "metadata")
    resource = objects.resource(str(value["apiVersion"]), kind)
    if resource is None:
        name = f"{kind}/{metadata.get('name')}"
        return {"object": name, "problems": [{"reason": "the kind is not served"}]}
    target = Target(resource, str(metadata.get("namespace", "")), str(metadata["name"]))
    result = apply.applied(objects, target, states.clean(value), chosen)
    if not result.get("problems") and resource.is_cluster and not dry_run:
        reply = objects.patch(target, {"status": value.get("status")}, chosen, part="status")
        result = kube_objects.result(target, "created", reply)
    return result


def moved(client: Client, state: State) -> list[Moved]:
    """Return the bindings that are not placed as before, once all are placed or a minute has passed."""
    until_s, changed_s = time.monotonic() + _WAIT_S, time.monotonic()
    before: list[Moved] | None = None
    while True:
        ours = {
            states.place_of(value): dict(states.placement_of(value).clusters)
            for value in server_reads.pages(client, "bindings")
        }
        found = [
            Moved("/".join(filter(None, name)), dict(placed.clusters), ours.get(name))
            for name, placed in sorted(state.placements.items())
            if ours.get(name) != placed.clusters
        ]
        now_s = time.monotonic()
        if found != before:
            before, changed_s = found, now_s
        if not found or now_s > until_s or now_s > changed_s + _STILL_S:
            return found
        time.sleep(_POLL_S)


def _show(report: Report) -> None:
    output.table(("KIND", "COPIED"), list(report.copied.items()))
    for result in report.refused:
        reasons = "; ".join(str(problem.get("reason", "")) for problem in as_objects(result.get("problems")))
        output.warn(f"not copied: {result.get('object') or result.get('name')}: {reasons}")
    for each in report.moved:
        after = "no binding" if each.after is None else each.after
        output.warn(f"not as before: {each.binding}: {each.before}, now {after}")
    for note in report.notes:
        output.warn(f"note: {note}")
    settled = report.bindings - len(report.moved)
    output.print_line(f"{settled} of {report.bindings} bindings are placed as before.")
