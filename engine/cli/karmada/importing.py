"""``import``: take over an existing Karmada's objects and placements, so that nothing moves."""

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Final

from cyclopts import Parameter
from msgspec import Struct, structs

from engine.cli import apply, failures, kube_objects, next_commands, options, output, server_reads
from engine.cli.client import Client
from engine.cli.karmada import observer_commands, states
from engine.cli.karmada.states import State
from engine.cli.kube_objects import KubeObjects, Target
from engine.cli.results import Problem, Result
from engine.domain import bindings
from engine.objects import bindings as stored_bindings
from events import keys
from events.kube_objects import KubeObject
from events.validation import known_kinds

_CREATED: Final = "created"
_CHANGED: Final = "configured"
_UNCHANGED: Final = "unchanged"
_AT_ONCE: Final = 8
_WAIT_S: Final = 60.0
_STILL_S: Final = 3.0
"""``import`` waits for the remaining bindings until nothing has changed for this many seconds."""

_POLL_S: Final = 0.2


class Moved(Struct, rename="camel"):
    """A binding whose placement differs from the original one; ``after`` is None if it does not exist."""

    binding: str
    before: dict[str, int]
    after: dict[str, int] | None


class Report(Struct, rename="camel"):
    """Numbers of created, changed and unchanged (``same``) objects by kind, and the refused ones with their reasons.

    ``bindings`` is the number of imported bindings; ``moved`` has those whose placement differs from the original.
    ``notes`` name other things that are not imported.
    """

    created: dict[str, int]
    changed: dict[str, int]
    same: dict[str, int]
    refused: list[Result]
    bindings: int
    moved: list[Moved]
    notes: list[str]


def import_karmada(
    source: observer_commands.Source,
    *,
    dry_run: Annotated[
        bool, Parameter(name="--dry-run", negative=(), help="Check the objects, but write nothing.")
    ] = False,
    scheduler: Annotated[
        str,
        Parameter(
            help="Schedule for the policies with this schedulerName; their copies name `reballast` instead."
        ),
    ] = "",
    server: options.Server = options.SERVER,
) -> int:
    state = states.of_api(source.access())
    if scheduler:
        state = states.taken_over(state, scheduler)
    with server.client() as client:
        report = copied(KubeObjects(client), state, dry_run=dry_run, takes_over=bool(scheduler))
        report.notes += _without_agents(state) + _only_here(client, state)
        if not dry_run:
            report.moved = moved(client, state)
    if server.json:
        output.json(report)
    else:
        _show(report)
        output.print_line(
            "Dry run: nothing was written."
            if dry_run
            else f"Bindings that are placed as before: {report.bindings - len(report.moved)} of {report.bindings}."
        )
    return failures.DIFFERENT if report.refused or report.moved else failures.OK


def _without_agents(state: State) -> list[str]:
    names = [value.name for value in state.objects if value.kind == "Cluster"]
    text = "clusters have no agent here, so nothing is changed in them; to add one"
    return [next_commands.hint(f"{len(names)} {text}", f"join {names[0]} --kubeconfig FILE")] if names else []


def _only_here(client: Client, state: State) -> list[str]:
    """Return the note about workloads and other objects of this server that do not exist in Karmada."""
    names: list[str] = []
    for binding in map(stored_bindings.of, server_reads.objects(client, "bindings")):
        template = binding.spec.resource
        if (binding.metadata.namespace, binding.metadata.name) not in state.placements:
            names.append(f"{template.kind} {keys.full_name(template.namespace, template.name)}")
    present = {(value.kind, value.key) for value in state.objects}
    for _, kind in states.KINDS:
        path, query = ("clusters", {}) if kind == "Cluster" else ("objects", {"kind": kind})
        stored = server_reads.objects(client, path, **query)
        names += [
            f"{kind} {keys.full_name(*value.key)}"
            for value in stored
            if (kind, value.key) not in present and not states.is_own(value)
        ]
    if not names:
        return []
    shown = output.joined(names)
    return [f"only here, not in Karmada: {shown}; if they were deleted there, delete them here too"]


def copied(objects: KubeObjects, state: State, *, dry_run: bool, takes_over: bool = False) -> Report:
    """Write the objects, several of a kind at a time; existing objects are changed to equal the copied ones.

    ``takes_over``: policies that were copied before with another scheduler's name are replaced.
    """
    report = Report({}, {}, {}, [], len(state.placements), [], [*state.notes])
    undecided: list[KubeObject] = []
    done = 0

    def write(value: KubeObject) -> Result:
        return _copied(objects, value, dry_run=dry_run, takes_over=takes_over)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for (kind, _), values in itertools.groupby(state.objects, _batch):
            batch = list(values)
            for value, result in zip(batch, pool.map(write, batch), strict=True):
                done += 1
                output.progress(f"copying: {done} of {len(state.objects)} objects")
                _count(report, kind, result)
                if result.kept_scheduler not in bindings.SCHEDULERS:
                    undecided.append(value)
    output.progress("")
    report.notes += states.undecided(undecided)
    return report


def _batch(value: KubeObject) -> tuple[str, bool]:
    """Return the kind, and whether it is a lazy policy: only neighbours with equal values are written concurrently."""
    return value.kind, states.is_lazy(value)


def _count(report: Report, kind: str, result: Result) -> None:
    name = keys.full_name(result.namespace, result.name or "")
    report.notes += [f"{kind} {name}: {warning}" for warning in result.warnings]
    if result.problems:
        report.refused.append(result)
        return
    action = result.action.partition(" ")[0]
    counts = {_CREATED: report.created, _UNCHANGED: report.same}.get(action, report.changed)
    counts[kind] = counts.get(kind, 0) + 1


def _copied(objects: KubeObjects, value: KubeObject, *, dry_run: bool, takes_over: bool) -> Result:
    """Write an object (of a Cluster also its status), and return the result."""
    chosen = kube_objects.Options("Warn", dry_run)
    resource = objects.resource(*value.type_meta)
    if resource is None:
        return Result(name=value.name, problems=[Problem(reason="the kind is not served")])
    target = Target(resource, *value.key)
    if value.kind in states.POLICY_KINDS:
        return _copied_policy(objects, target, value, chosen, takes_over=takes_over)
    result = apply.applied(objects, target, states.clean(value), chosen)
    if result.problems or resource != known_kinds.CLUSTER or dry_run:
        return result
    before = objects.get(target)
    reply = objects.patch(target, {"status": value.at("status")}, chosen, part="status")
    is_same = not reply.is_refusal and before is not None and reply.body.get("status") == before.at("status")
    is_new = result.action == _CREATED
    return result if is_same else kube_objects.result(target, _CREATED if is_new else _CHANGED, reply)


def _copied_policy(
    objects: KubeObjects, target: Target, value: KubeObject, chosen: kube_objects.Options, *, takes_over: bool
) -> Result:
    """Write a policy; an existing one keeps its scheduler unless ``takes_over``.

    The scheduler's name is immutable, so a policy that is taken over is deleted and created again.
    """
    live, desired = objects.get(target), states.clean(value)
    before, after = states.scheduler_of(live), states.scheduler_of(desired)
    if live is None or before == after:
        return apply.applied(objects, target, desired, chosen)
    if not takes_over or after != bindings.REBALLAST_SCHEDULER:
        kept = {**desired.object_at("spec"), states.SCHEDULER: before}
        result = apply.applied(objects, target, desired.with_fields({"spec": kept}), chosen)
        return structs.replace(result, kept_scheduler=before)
    if chosen.dry_run:
        return kube_objects.named(target, _CHANGED)
    deletion = objects.delete(target)
    if deletion.problems:
        return deletion
    result = apply.applied(objects, target, desired, chosen)
    return result if result.problems else structs.replace(result, action=_CHANGED)


def moved(client: Client, state: State) -> list[Moved]:
    """Return the bindings that are not placed as before, once all are placed or a minute has passed."""
    until_s, changed_s = time.monotonic() + _WAIT_S, time.monotonic()
    before: list[Moved] | None = None
    while True:
        placements = {
            value.key: states.placement_of(stored_bindings.of(value)).clusters
            for value in server_reads.objects(client, "bindings")
        }
        result = [
            Moved(keys.full_name(*name), dict(placed.clusters), placements.get(name))
            for name, placed in sorted(state.placements.items())
            if placements.get(name) != placed.clusters
        ]
        now_s = time.monotonic()
        if result != before:
            before, changed_s = result, now_s
        if not result or now_s > until_s or now_s > changed_s + _STILL_S:
            return result
        time.sleep(_POLL_S)


def _show(report: Report) -> None:
    kinds = list(dict.fromkeys((*report.created, *report.changed, *report.same)))
    counts = (report.created, report.changed, report.same)
    rows = [(kind, *(count.get(kind, 0) for count in counts)) for kind in kinds]
    output.table(("KIND", "CREATED", "CHANGED", "UNCHANGED"), rows)
    for result in report.refused:
        output.warn(f"not copied: {refusal(result)}")
    for move in report.moved:
        after = "no binding" if move.after is None else bindings.targets_text(move.after)
        before = bindings.targets_text(move.before)
        output.warn(f"placed differently: {move.binding}: {before} in Karmada, {after} here")
    for note in report.notes:
        output.warn(f"note: {note}")


def refusal(result: Result) -> str:
    """Return a refused object and the reasons in one line."""
    name = "/".join(filter(None, (result.resource, result.namespace, result.name)))
    return f"{name}: " + "; ".join(problem.reason for problem in result.problems)
