"""``reballast drill``: the failure of each cluster, zone, region and provider, each predicted on a fork of its own."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Final

from cyclopts import Parameter
from msgspec import Struct

from engine.cli import failures, options, output
from engine.cli.client import Client
from engine.cli.plan import asking, domains
from engine.cli.plan.subjects import SUBJECT, Subject
from engine.kubeapi.values import quantity
from engine.plans import summaries
from engine.plans.predictions import Prediction, WorkloadChange
from events.json_values import Json

_AT_ONCE: Final = 2
_SHOWN_MAX: Final = 5
_ABSORBED: Final = 0
_NOT_ABSORBED: Final = 2


class Outage(Struct, frozen=True):
    """A failure of all clusters of a domain."""

    domain: domains.Domain
    name: str
    clusters: tuple[str, ...]


class Result(Struct, frozen=True, rename="camel"):
    """The predicted effect of an outage.

    ``missing`` replicas are in no working cluster at the end, and need ``needed`` more capacity in clusters that their
    policies allow. ``recovered_ms`` is the virtual time until the engine came to rest; None if replicas are missing.
    """

    outage: Outage
    moved: int
    missing: int
    needed: dict[str, str]
    recovered_ms: int | None
    suffering: list[WorkloadChange]
    assumptions: list[str]


By = Annotated[
    list[domains.Domain], Parameter(negative=(), help="What fails as a whole; all of these by default.")
]


def drill(
    *,
    by: By = list(domains.ALL),  # noqa: B006  # cyclopts makes a new list for each call
    horizon: Annotated[str, Parameter(help="Virtual time to look ahead: 30m, 1h30m, 90s.")] = "30m",
    as_of: options.AsOf = "",
    subject: Subject = SUBJECT,
) -> int:
    """Predict the failure of each cluster, zone, region and provider."""
    horizon_ms = options.read_duration("--horizon", horizon)
    with (
        subject.opened(as_of) as opened,
        Client(opened.directory, is_local=opened.is_copy) as client,
    ):
        outages = _outages(client, by, opened.as_of)
        if not outages:
            raise failures.Failure("there are no clusters", "join one: reballast join")
        results = _results(client, outages, horizon_ms, opened.as_of)
    if subject.json:
        output.json(results)
    else:
        _show(results)
        for note in opened.notes:
            output.warn(f"note: {note}")
    return _NOT_ABSORBED if any(result.missing for result in results) else _ABSORBED


def _outages(client: Client, by: Sequence[domains.Domain], as_of: str) -> list[Outage]:
    """Return the outages of these domains; one with the same clusters as an earlier one is left out."""
    members = {place: names for place, names in domains.members(client, as_of).items() if place[0] in by}
    found: dict[tuple[str, ...], Outage] = {}
    for (domain, place), names in sorted(
        members.items(), key=lambda item: (domains.ALL.index(item[0][0]), item[0][1])
    ):
        clusters = tuple(sorted(names))
        found.setdefault(clusters, Outage(domain, place, clusters))
    return list(found.values())


def _results(client: Client, outages: Sequence[Outage], horizon_ms: int, as_of: str) -> list[Result]:
    """Return the result of each outage, in order; shows the progress on a terminal."""
    done = 0

    def predicted(outage: Outage) -> Result:
        nonlocal done
        failed: list[Json] = [{"member": name} for name in outage.clusters]
        _, prediction = asking.predicted(client, [], failed, horizon_ms, lambda _: None, as_of)
        done += 1
        output.progress(f"drill: {done} of {len(outages)} failures")
        return _result(outage, prediction)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        results = list(pool.map(predicted, outages))
    output.progress("")
    return results


def _result(outage: Outage, prediction: Prediction) -> Result:
    suffering = [each for each in prediction.changed if each.missing or each.ready_min < each.ready_before]
    missing = sum(each.missing for each in suffering)
    return Result(
        outage=outage,
        moved=len(prediction.moved),
        missing=missing,
        needed=_sum([each.missing_requests for each in suffering]),
        recovered_ms=None if missing else prediction.settled_ms,
        suffering=sorted(suffering, key=lambda each: (-each.missing, each.ready_min - each.ready_before)),
        assumptions=prediction.assumptions,
    )


def _sum(requests: Sequence[dict[str, str]]) -> dict[str, str]:
    sums: dict[str, int] = {}
    for each in requests:
        for name, text in each.items():
            sums[name] = sums.get(name, 0) + quantity.nano_units(text)
    return {name: quantity.of_nano(name, amount) for name, amount in sorted(sums.items())}


def _show(results: Sequence[Result]) -> None:
    output.table(
        ("FAILURE", "CLUSTERS", "MOVED", "DISTURBED", "WITHOUT A PLACE", "NEEDS", "RECOVERED AFTER"),
        [
            (
                f"{result.outage.domain} {result.outage.name}",
                len(result.outage.clusters),
                result.moved,
                len(result.suffering),
                result.missing,
                " ".join(f"{name} {text}" for name, text in result.needed.items()) or "-",
                "never" if result.recovered_ms is None else summaries.duration(result.recovered_ms),
            )
            for result in results
        ],
        fits=True,
    )
    for result in results:
        lost = [each for each in result.suffering if each.missing]
        for each in lost[:_SHOWN_MAX]:
            output.print_line(
                f"{result.outage.domain} {result.outage.name}: {each.key} lacks {each.missing} replicas"
            )
        if len(lost) > _SHOWN_MAX:
            output.print_line(
                f"{result.outage.domain} {result.outage.name}: … and {len(lost) - _SHOWN_MAX} more"
            )
    for note in dict.fromkeys(note for result in results for note in result.assumptions):
        output.warn(f"note: {note}")
