"""``plan check``: the predicted effects of an applied plan beside the actual ones.

All records that the requests of an applied plan cause have the plan's id as their trace. The trace separates them
from later changes by other clients, which are not effects of the plan.
"""

from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from engine.cli import explanation_texts, failures, next_commands, output, server_reads
from engine.cli.client import Client
from engine.cli.plan import saved_plans
from engine.objects.bindings import Binding
from engine.plans import summaries
from engine.plans.predictions import Prediction
from events import catalogue, decisions, times
from events.json_values import Json

_PLACING: Final = catalogue.types_of(decisions.ScheduleDecided, decisions.BindingWithdrawn)
"""Types of the decisions that change the clusters of a workload."""


class Workload(Struct, frozen=True, rename="camel"):
    """A workload's predicted clusters, and its actual clusters after the last decision that the plan caused for it."""

    key: str
    predicted: dict[str, int]
    actual: dict[str, int]

    @property
    def as_predicted(self) -> bool:
        return self.predicted == self.actual


class Check(Struct, frozen=True, rename="camel"):
    """The workloads whose change a plan predicted, and those that it changed although it predicted no change.

    ``number`` is the number of the last record that the plan caused about these workloads. ``settled_ms`` is the time
    from the first to the last such record. ``predicted_ms`` is the predicted time until all replicas are ready.
    """

    id: str
    number: int
    settled_ms: int
    predicted_ms: int
    workloads: list[Workload]


def check(client: Client, plan: str) -> Check:
    """Compare the predicted effects of an applied plan with the actual ones; raises Failure if it was not applied."""
    plan_id, prediction = _read(client, plan)
    followed = list(server_reads.entries(client, "log", start=prediction.number, plan=plan_id))
    if not followed:
        raise failures.Failure(
            "no record was caused by this plan", next_commands.hint("apply it", "apply --plan FILE")
        )
    predicted = {change.key: change.after for change in prediction.changed}
    others = {entry.subject for entry in followed if entry.type in _PLACING}
    others -= {*predicted, *prediction.unrelated}
    before = {key: _placed(client, key, prediction.number) for key in sorted(others)}
    own = [entry for entry in followed if entry.subject in predicted or entry.subject in others]
    number = max(entry.number for entry in own or followed)
    # Read the clusters after the last decision, not the last report, which may follow another client's change.
    decided = {entry.subject: entry.number for entry in own if entry.type in _PLACING}
    moments_ms = [times.from_text(entry.time) for entry in own]
    workloads = [
        Workload(key, clusters, _placed(client, key, decided.get(key, number)))
        for key, clusters in (predicted | before).items()
    ]
    return Check(
        id=plan_id,
        number=number,
        settled_ms=max(moments_ms) - min(moments_ms) if own else 0,
        predicted_ms=prediction.settled_ms,
        workloads=[
            workload for workload in workloads if workload.key in predicted or not workload.as_predicted
        ],
    )


def show(check: Check) -> None:
    """Print a check: each workload, and a summary."""
    if not check.workloads:
        output.print_line("Nothing moved, as predicted.")
        return
    output.table(
        ("WORKLOAD", "PREDICTED", "ACTUAL", ""),
        [
            (
                workload.key,
                _clusters(workload.predicted),
                _clusters(workload.actual),
                "" if workload.as_predicted else "differs",
            )
            for workload in check.workloads
        ],
        fits=True,
    )
    same, count = sum(workload.as_predicted for workload in check.workloads), len(check.workloads)
    output.print_text(
        f"{same} of {summaries.count(count, 'workload')} {'is' if count == 1 else 'are'} as predicted; placed within "
        f"{summaries.duration(check.settled_ms)}, predicted to be ready after {summaries.duration(check.predicted_ms)}"
    )


def _read(client: Client, plan: str) -> tuple[str, Prediction]:
    """Return id and prediction of the plan in the file ``plan``, or of the plan with this id on the server."""
    if _exists(Path(plan)):
        saved = saved_plans.read(Path(plan))
        if saved.prediction is None:
            raise failures.Failure(f"{plan} changes nothing", "compare a plan that changes objects")
        return saved.id, saved.prediction
    kept = client.find(f"plans/{plan}", Json)
    if kept is None:
        raise failures.Failure(
            f"no file {plan}, and no plan with this id on the server",
            "save plans: reballast plan … -o FILE",
        )
    if "prediction" not in kept:
        state = f"failed: {kept.get('reason')}" if kept.get("state") == "failed" else "is not done yet"
        raise failures.Failure(f"the plan {plan} {state}", "compare a plan that is done")
    return str(kept["id"]), msgspec.convert(kept["prediction"], Prediction)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # too long for a name
        return False


def _placed(client: Client, key: str, number: int) -> dict[str, int]:
    binding = client.find(f"bindings/{key}", Binding, asOf=number) or Binding()
    return {target.name: target.replicas or 0 for target in binding.spec.clusters}


def _clusters(clusters: dict[str, int]) -> str:
    return explanation_texts.counts(dict(sorted(clusters.items())))
