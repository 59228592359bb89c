"""``plan`` and its subcommands: each computes the same writes as the command that would make the change.

They print the prediction: a summary, the replicas of each workload as bars, the clusters, and the warnings.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, cast

import msgspec
from cyclopts import App, Parameter, validators

from engine.cli import apply, failures, kube_objects, next_commands, options, output, results, server_reads
from engine.cli import set_properties as properties
from engine.cli.client import Client
from engine.cli.help_texts import questions
from engine.cli.kube_objects import KubeObjects, Target
from engine.cli.plan import plan_check, planning_client, saved_plans
from engine.cli.plan.subjects import SUBJECT, Subject
from engine.cli.results import Result
from engine.objects import bindings
from engine.plans import drills, summaries
from engine.plans.predictions import Prediction, WorkloadChange
from engine.plans.questions import Failure
from events import limits
from events.json_values import Json
from events.kube_objects import KubeObject
from events.validation.known_kinds import REBALANCER

_NAMED: Final = (1, 2)
"""Numbers of words that name a workload: deploy/web, or deploy web."""

_SCALE_EXAMPLE: Final = "reballast plan scale deploy/web 40"

_BAR: Final = 20
_KEPT, _LEAVING, _COMING = "█", "░", "▓"
_RED, _GREEN, _END = "\x1b[31m", "\x1b[32m", "\x1b[0m"

app = App(name="plan", help=questions.PLAN, help_format="plaintext")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """How far to look ahead, how to show the prediction, and the control plane that it is about."""

    horizon: options.Horizon = "30m"
    as_of: options.AsOf = ""
    limit: Annotated[
        int,
        Parameter(
            help="Maximum number of workloads to show, the most disturbed first.",
            validator=validators.Number(gte=0),
        ),
    ] = 20
    out: Annotated[
        Path | None, Parameter(name=["--out", "-o"], help="Write the plan to this file, for `apply --plan`.")
    ] = None
    subject: Subject = SUBJECT


PLAN_OPTIONS: Final = PlanOptions()
Changes = Callable[[KubeObjects], list[Result]]


@app.default
def plan(
    *words: Annotated[str, Parameter(show=False)],
    filename: apply.Files = [],  # noqa: B006  # cyclopts makes a new list for each call
    scope: options.NamespaceOption = options.NAMESPACE,
    plan_options: PlanOptions = PLAN_OPTIONS,
) -> int:
    """Predict the effect of applying files."""
    if words:
        remedy = failures.suggestion(words[0], app, "see: reballast plan --help")
        raise failures.usage(f'"{words[0]}" is not a change that plan knows', remedy)
    if not filename:
        raise failures.usage("missing change", "reballast plan -f change.yaml; see: reballast plan --help")
    files = apply.read(filename)
    return _planned(
        lambda objects: _required(apply.apply_files(objects, files, scope.namespace)), plan_options
    )


@app.command
def delete(
    kind: options.Kind = "",
    /,
    *names: options.Names,
    filename: apply.Files = [],  # noqa: B006  # cyclopts makes a new list for each call
    scope: options.NamespaceOption = options.NAMESPACE,
    plan_options: PlanOptions = PLAN_OPTIONS,
) -> int:
    """Predict the effect of deleting objects, by file, or by kind and name."""
    deletions = apply.deletions(kind, names, filename, scope.namespace)
    return _planned(lambda objects: _required(deletions(objects)), plan_options)


@app.command
def cordon(cluster: options.Cluster, /, *, plan_options: PlanOptions = PLAN_OPTIONS) -> int:
    """Predict the effect of marking a cluster as unschedulable."""
    return _planned(
        lambda objects: [properties.change_taints(objects, cluster, "cordoned", properties.cordoned)],
        plan_options,
    )


@app.command
def taint(
    cluster: options.Cluster,
    /,
    *taints: properties.Taints,
    plan_options: PlanOptions = PLAN_OPTIONS,
) -> int:
    """Predict the effect of taints (KEY=VALUE:EFFECT, KEY:EFFECT, or with - to remove one)."""
    name, action, compute = properties.tainting(cluster, taints)
    return _planned(lambda objects: [properties.change_taints(objects, name, action, compute)], plan_options)


@app.command
def scale(
    *words: Annotated[
        str, Parameter(help="KIND/NAME or KIND NAME, then the number of replicas unless --replicas has it.")
    ],
    replicas: properties.Replicas | None = None,
    scope: options.NamespaceOption = options.NAMESPACE,
    plan_options: PlanOptions = PLAN_OPTIONS,
) -> int:
    """Predict the effect of another number of replicas: deploy/web 40."""
    named = list(words)
    if replicas is None and len(named) > 1:
        replicas = _read_replicas(named.pop())
    if replicas is None:
        raise failures.usage("missing number of replicas", _SCALE_EXAMPLE)
    if len(named) not in _NAMED or (len(named) == 1 and "/" not in named[0]):
        raise failures.usage("missing kind or name of the workload", _SCALE_EXAMPLE)
    kind, name = properties.split(named[0], "".join(named[1:]))
    count = replicas

    def scaled(objects: KubeObjects) -> list[Result]:
        target = objects.target(kind, scope.namespace, name)
        return [properties.set_replicas(objects.client, objects, target, count)]

    return _planned(scaled, plan_options)


def _read_replicas(text: str) -> int:
    # Python refuses to convert thousands of digits.
    is_short = len(text) <= len(str(limits.REPLICAS_MAX))
    if not text.isdecimal() or not is_short or int(text) > limits.REPLICAS_MAX:
        raise failures.usage(
            f"{limits.quoted(text)} is not a number of replicas",
            f"write a number from 0 to {limits.REPLICAS_MAX}",
        )
    return int(text)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Outage:
    """Zones, regions and providers whose clusters fail too; each option may be repeated."""

    zone: Annotated[tuple[str, ...], Parameter(negative=(), help="All clusters in this zone.")] = ()
    region: Annotated[tuple[str, ...], Parameter(negative=(), help="All clusters in this region.")] = ()
    provider: Annotated[tuple[str, ...], Parameter(negative=(), help="All clusters of this provider.")] = ()


_OUTAGE: Final = Outage()


@app.command
def fail(
    *clusters: options.Clusters,
    outage: Outage = _OUTAGE,
    plan_options: PlanOptions = PLAN_OPTIONS,
) -> int:
    """Predict the failure of clusters."""
    chosen: dict[drills.Domain, Sequence[str]] = {
        "zone": outage.zone,
        "region": outage.region,
        "provider": outage.provider,
    }
    if not clusters and not any(chosen.values()):
        raise failures.usage(
            "missing clusters", "reballast plan fail member1, or --zone, --region, --provider"
        )

    def failed(client: Client) -> list[Failure]:
        names = dict.fromkeys([*clusters, *_clusters_in(client, chosen)])
        return [Failure(member=name) for name in names]

    return _planned(lambda _: [], plan_options, failed)


@app.command
def rebalance(
    *,
    all_workloads: Annotated[
        bool, Parameter(name="--all", negative=(), help="Workloads of all namespaces.")
    ] = False,
    selector: Annotated[
        str, Parameter(name=["--selector", "-l"], help="Workloads with these labels: app=web,tier in (a,b).")
    ] = "",
    namespace: Annotated[
        str, Parameter(name=["--namespace", "-n"], help="Workloads of this namespace.")
    ] = "",
    plan_options: PlanOptions = PLAN_OPTIONS,
) -> int:
    """Predict a rebalance of workloads."""
    if not (all_workloads or selector or namespace):
        raise failures.usage("missing workloads", "give --all, -l LABELS or -n NAMESPACE")

    def rebalanced(objects: KubeObjects) -> list[Result]:
        workloads = _workloads(objects, selector, namespace)
        if not workloads:
            raise failures.Failure("no workload matches", next_commands.hint("list them", "get rb -A"))
        target = Target(REBALANCER, "", "planned")
        value: Json = {
            "apiVersion": REBALANCER.api_version,
            "kind": REBALANCER.kind,
            "metadata": {"name": target.name},
            "spec": {"workloads": msgspec.to_builtins(workloads)},
        }
        return [kube_objects.result(target, "created", objects.create(target, KubeObject(value)))]

    return _planned(rebalanced, plan_options)


@app.command
def check(
    plan: Annotated[str, Parameter(help="File from `plan -o`, or the id of a recent plan on the server.")],
    /,
    *,
    server: options.Server = options.SERVER,
) -> int:
    """Compare the prediction of an applied plan (a file, or the id of a recent plan) with what happened."""
    with server.client() as client:
        result = plan_check.check(client, plan)
    server.show(result, plan_check.show)
    return failures.OK if all(workload.as_predicted for workload in result.workloads) else failures.DIFFERENT


def _required(outcomes: Iterable[Result]) -> list[Result]:
    """Return the results for the objects in files; raises Failure if the files contain none."""
    made = list(outcomes)
    if not made:
        raise apply.no_objects()
    return made


def _workloads(objects: KubeObjects, selector: str, namespace: str) -> list[bindings.Template]:
    """Return references to the templates of bindings, as a WorkloadRebalancer names them."""
    listed = server_reads.objects(objects.client, "bindings", labelSelector=selector, namespace=namespace)
    return [bindings.of(binding).spec.resource for binding in listed]


def _planned(
    changes: Changes,
    plan_options: PlanOptions,
    failing: Callable[[Client], list[Failure]] = lambda _: [],
) -> int:
    """Compute the writes of a change, have the server predict their effect, and show it; return the exit code."""
    horizon_ms, subject = planning_client.read_horizon(plan_options.horizon), plan_options.subject
    with (
        subject.opened(plan_options.as_of) as opened,
        planning_client.PlanningClient(opened.directory, as_of=opened.as_of) as client,
    ):
        if opened.is_copy and plan_options.out is not None:
            raise failures.usage(
                "a plan for an existing Karmada can't be applied here",
                "leave out -o; make the change with kubectl",
            )
        made = changes(KubeObjects(client))
        if refused := [result for result in made if result.problems]:
            # Print the refused writes only: results of the others would look as if those had been made.
            return results.print_results(refused, as_json=subject.json)
        failed = failing(client)
        if not client.requests and not failed:
            if plan_options.out is not None:
                # Overwrite the file: an earlier plan in it could be applied by mistake.
                saved_plans.save(plan_options.out, saved_plans.SavedPlan([], [], [], horizon_ms, None))
            saved_plans.show_unchanged(as_json=subject.json)
            return failures.OK
        answer, prediction = planning_client.predict(
            client, client.requests, failed, horizon_ms, as_of=opened.as_of
        )
        if plan_options.out is not None:
            saved = saved_plans.SavedPlan(
                client.requests, client.bases, failed, horizon_ms, prediction, str(answer["id"])
            )
            saved_plans.save(plan_options.out, saved)
            output.warn(f"Plan written to {plan_options.out}.")
    warnings = [*opened.notes, *map(str, cast("list[object]", answer.get("warnings") or []))]
    if subject.json:
        output.json({**answer, "warnings": warnings} if warnings else answer)
    else:
        _show(prediction, warnings, plan_options.limit)
    return (
        failures.DIFFERENT if prediction.changed or prediction.unplaced or prediction.refused else failures.OK
    )


def _clusters_in(client: Client, chosen: dict[drills.Domain, Sequence[str]]) -> list[str]:
    """Return the clusters in the chosen zones, regions and providers; raises Failure for one that has no cluster."""
    result: dict[drills.DomainName, list[str]] = {}
    if any(chosen.values()):
        result = drills.domain_names(server_reads.objects(client, "clusters"))
    names: list[str] = []
    for domain, domain_names in chosen.items():
        for domain_name in domain_names:
            if (domain, domain_name) not in result:
                known = ", ".join(sorted(name for result_domain, name in result if result_domain == domain))
                raise failures.Failure(
                    f"no cluster is in {domain} {domain_name}",
                    f"choose one of: {known}" if known else next_commands.hint("see", "get clusters"),
                )
            names += result[domain, domain_name]
    return names


def _show(prediction: Prediction, warnings: Sequence[str], limit: int) -> None:
    """Print a prediction, with at most ``limit`` workloads."""
    output.print_text(summaries.summary(prediction))
    shown = summaries.most_disturbed(prediction)
    for change in shown[:limit]:
        output.print_line("")
        for line in _workload(change):
            output.print_line(line)
        for text in summaries.details(change):
            output.print_text(f"  {text}")
    if len(shown) > limit:
        output.print_line(f"\n… and {len(shown) - limit} more workloads; --limit shows them, --json has all.")
    if prediction.clusters:
        output.print_line("")
        output.table(
            ("CLUSTER", "RESOURCE", "BEFORE", "AFTER", "PEAK", "ALLOCATABLE"),
            summaries.loads(prediction.clusters),
        )
    for note in summaries.notes(prediction, warnings):
        output.warn(f"note: {note}")


def _workload(change: WorkloadChange) -> list[str]:
    template = change.template
    where = f" in {template.namespace}" if template.namespace else ""
    ready = summaries.ready(change)
    lines = [f"{template.kind.lower()}/{template.name}{where}{f': {ready}' if ready else ''}"]
    names = sorted(change.before.keys() | change.after.keys())
    most = max([*change.before.values(), *change.after.values(), 1])
    width = max(map(len, names), default=0)
    for name in names:
        before, after = change.before.get(name, 0), change.after.get(name, 0)
        if before == after == 0:
            sign = (
                "stays"
                if name in change.before and name in change.after
                else "gone"
                if name in change.before
                else "new"
            )
            lines.append(f"  {name.ljust(width)}  {sign}")
            continue
        numbers = f"{before} → {after}" if before != after else str(after)
        lines.append(f"  {name.ljust(width)}  {_bar(before, after, most)}  {numbers}")
    return lines


def _bar(before: int, after: int, most: int) -> str:
    """Return replicas as a bar: those that stay, then those that are removed or added."""
    scale = max(most / _BAR, 1)
    kept, removed, new = (
        round(count / scale) for count in (min(before, after), max(before - after, 0), max(after - before, 0))
    )
    pad = " " * (min(_BAR, most) - kept - removed - new)
    if output.has_colours():
        return f"{_KEPT * kept}{_RED}{_LEAVING * removed}{_END}{_GREEN}{_COMING * new}{_END}{pad}"
    return f"{_KEPT * kept}{_LEAVING * removed}{_COMING * new}{pad}"
