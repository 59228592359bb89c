"""Benchmark: scheduling decisions per second, compared with Karmada's scheduler and a baseline.

It uses fifty placements and a different request for each binding. One cluster reports its
capacity before every fifty decisions, so a cache that is emptied by each report does not help. Each result is read as
two lists: the names of the chosen clusters, and their replicas. ``pairs_per_s`` is the rate if results are read as
(name, replicas) tuples instead. In modes with the prefix ``steady-`` or ``fresh-`` each binding has an earlier result
and gets another number of replicas; the lists of the earlier result are still cached, as in a worker.
"""

import heapq
import itertools
import time
from collections.abc import Callable
from typing import Final

from engine.bench.runs import Figures
from engine.kubeapi.values import selectors
from engine.objects import clusters, placements
from engine.placement import decisions, fleet, requests, schedule

MODES: Final = ("duplicated", "static", "dynamic", "aggregated", "region")
KARMADA_PER_S: Final = {
    10: {"dynamic": 11_700, "duplicated": 13_700},
    100: {"dynamic": 1_330, "duplicated": 1_540},
    1_000: {"dynamic": 97, "duplicated": 99, "static": 71, "aggregated": 75, "region": 81},
    5_000: {"dynamic": 15.5, "duplicated": 16.4},
}
"""Karmada's decisions per second, by number of clusters and mode: the highest measured, with one core of two."""

_PLACEMENTS: Final = 50
_BINDINGS: Final = 500
_KINDS: Final = 60
_REGIONS: Final = 8


def run(clusters: int, mode: str, seconds: float, replicas: int = 100) -> Figures:
    """Measure one mode for some seconds.

    With the prefix ``steady-`` or ``fresh-``, bindings have earlier results and get another number of replicas. Raises
    ValueError if the mode is unknown.
    """
    prefix, _, base = mode.rpartition("-")
    if base not in MODES or prefix not in {"", "steady", "fresh"}:
        msg = f"mode {mode!r} is not one of {', '.join(MODES)}; each may have the prefix steady- or fresh-"
        raise ValueError(msg)
    known = make_fleet(clusters)
    scheduling_requests = _requests(known, base, prefix, replicas)
    turn = _turn(known, scheduling_requests, lambda decision: len(decision.columns[0]))
    placed = turn()
    seconds_each, each_cpu = _seconds_each(turn, _BINDINGS, seconds)
    in_pairs = _turn(known, scheduling_requests, lambda decision: len(decision.clusters))
    by_pairs, _ = _seconds_each(in_pairs, _BINDINGS, min(seconds, 1.0))
    baseline, _ = _seconds_each(lambda: _divide_by_definition(known, replicas), 1, min(seconds, 1.0))
    karmada_per_s = KARMADA_PER_S.get(clusters, {}).get(base)
    return {
        "clusters": clusters,
        "mode": mode,
        "replicas": replicas,
        "decisions_per_s": round(1 / seconds_each, 1),
        "decisions_per_cpu_s": round(1 / each_cpu, 1),
        "pairs_per_s": round(1 / by_pairs, 1),
        "placed_share": round(placed / _BINDINGS, 3),
        "microseconds": round(seconds_each * 1e6, 1),
        "karmada_per_s": karmada_per_s,
        "times_karmada": None if karmada_per_s is None else round(1 / seconds_each / karmada_per_s, 1),
        "baseline": "the same weights divided one replica at a time with a heap, in plain Python",
        "baseline_per_s": round(1 / baseline, 1),
        "ratio": round(baseline / seconds_each, 2),
    }


def make_fleet(count: int) -> fleet.Fleet:
    """A fleet in eight regions, with labels, a taint on every tenth cluster, and sixty API kinds per cluster."""
    known = fleet.Fleet()
    for number in range(count):
        known.put(_cluster(number))
    return known


def _cluster(number: int) -> clusters.ClusterManifest:
    kinds = tuple(clusters.ApiResource(kind=f"Kind{kind}") for kind in range(_KINDS - 1))
    apis = clusters.ApiEnablement(
        group_version="apps/v1", resources=(clusters.ApiResource(kind="Deployment"), *kinds)
    )
    region = f"region-{number % _REGIONS}"
    tainted = (clusters.Taint(key="edge", effect="NoSchedule"),) if number % 10 == 9 else ()  # noqa: PLR2004  # one in ten
    return clusters.ClusterManifest(
        metadata=clusters.ClusterMetadata(
            name=f"member-{number:05d}",
            labels={"tier": ("gold", "silver", "bronze")[number % 3], "slot": str(number % 5)},
        ),
        spec=clusters.ClusterSpec(
            provider="aws",
            region=region,
            zones=(f"{region}-{number % 3}",),
            taints=tainted,
        ),
        status=clusters.ClusterStatus(api_enablements=(apis,), resource_summary=_summary(number, 0)),
    )


def _summary(number: int, turn: int) -> clusters.ResourceSummary:
    return clusters.ResourceSummary(
        allocatable={"cpu": str(64 + number % 64), "memory": f"{256 + number % 128}Gi", "pods": "440"},
        allocated={
            "cpu": f"{(number * 37 + turn * 11) % 64_000}m",
            "memory": f"{number % 64}Gi",
            "pods": str(number % 97),
        },
    )


def _placement(mode: str, number: int) -> placements.Placement:
    """One of fifty placements of a mode; each excludes another cluster that does not exist, so that they differ."""
    everywhere = placements.ClusterAffinity(exclude=(f"nowhere-{number}",))
    tolerations = (placements.Toleration(key="edge", operator="Exists"),)
    return placements.Placement(
        cluster_affinity=everywhere,
        cluster_tolerations=tolerations,
        spread_constraints=(
            placements.SpreadConstraint(spread_by_field="region", min_groups=2, max_groups=4),
            placements.SpreadConstraint(spread_by_field="cluster", min_groups=2, max_groups=40),
        )
        if mode == "region"
        else (),
        replica_scheduling=_preference(mode),
    )


def _preference(mode: str) -> placements.ReplicaSchedulingStrategy:
    match mode:
        case "duplicated":
            return placements.ReplicaSchedulingStrategy(replica_scheduling_type="Duplicated")
        case "aggregated":
            return placements.ReplicaSchedulingStrategy(
                replica_scheduling_type="Divided", replica_division_preference="Aggregated"
            )
        case "static":
            weights = placements.ClusterPreferences(static_weight_list=_static_weights())
        case _:
            weights = placements.ClusterPreferences(dynamic_weight="AvailableReplicas")
    return placements.ReplicaSchedulingStrategy(
        replica_scheduling_type="Divided", replica_division_preference="Weighted", weight_preference=weights
    )


def _static_weights() -> tuple[placements.StaticClusterWeight, ...]:
    return tuple(
        placements.StaticClusterWeight(
            target_cluster=placements.ClusterAffinity(
                label_selector=selectors.LabelSelector(match_labels={"tier": tier})
            ),
            weight=weight,
        )
        for tier, weight in (("gold", 5), ("silver", 3), ("bronze", 1))
    )


def _requests(known: fleet.Fleet, mode: str, prefix: str, replicas: int) -> list[requests.Request]:
    """One request per binding. With a ``prefix`` (steady, fresh), each has a previous result and changed replicas."""
    styles = [_placement(mode, number) for number in range(_PLACEMENTS)]
    scheduling_requests: list[requests.Request] = []
    for number in range(_BINDINGS):
        request = requests.Request(
            resource=requests.Resource(
                api_version="apps/v1",
                kind="Deployment",
                namespace="default",
                name=f"web-{number}",
                uid=f"uid-{number}",
            ),
            placement=styles[number % _PLACEMENTS],
            replicas=replicas,
            requests=(("cpu", 100 + number), ("memory", (64 + number) << 20)),
        )
        scheduling_requests.append(_rescaled(request, known, prefix, number) if prefix else request)
    return scheduling_requests


def _rescaled(request: requests.Request, known: fleet.Fleet, prefix: str, number: int) -> requests.Request:
    previous = schedule.schedule(request, known).clusters
    return requests.Request(
        resource=request.resource,
        placement=request.placement,
        replicas=max(request.replicas + (5 if number % 2 else -5), 1),
        requests=request.requests,
        current=previous,
        fresh=prefix == "fresh",
    )


def _turn(
    known: fleet.Fleet, scheduling_requests: list[requests.Request], read: Callable[[decisions.Decision], int]
) -> Callable[[], int]:
    """Return a function that decides all requests once, with a capacity report before every fifty requests.

    It returns the number of requests that got clusters. ``read`` reads a result and returns its number of clusters.
    """
    names = known.names()
    reports = itertools.count(1)

    def turn() -> int:
        placed = 0
        for number, request in enumerate(scheduling_requests):
            if number % _PLACEMENTS == 0:
                report = next(reports)
                index = report * 7 % len(names)
                known.report(names[index], _summary(index, report))
            # Read each result: lazily computed columns that are never read would make the rate too high.
            placed += read(schedule.schedule(request, known)) > 0
        return placed

    return turn


def _seconds_each(turn: Callable[[], object], count: int, seconds: float) -> tuple[float, float]:
    """Mean seconds per item of a turn with ``count`` items: elapsed time, and processor time.

    The two differ if other programs use the same core.
    """
    turns = 0
    start, start_cpu = time.perf_counter(), time.process_time()
    while True:
        turn()
        turns += 1
        passed = time.perf_counter() - start
        if passed >= seconds:
            done = turns * count
            return passed / done, (time.process_time() - start_cpu) / done


def _divide_by_definition(known: fleet.Fleet, replicas: int) -> None:
    """The baseline: Webster's method by its definition, one replica at a time."""
    votes: list[int] = known.pods.tolist()
    seats = [0] * len(votes)
    queue = [(-float(vote), 0, rank) for rank, vote in enumerate(votes)]
    heapq.heapify(queue)
    for _ in range(replicas):
        _, _, rank = queue[0]
        seats[rank] += 1
        heapq.heapreplace(queue, (-votes[rank] / (2 * seats[rank] + 1), seats[rank], rank))
