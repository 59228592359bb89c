"""``python -m tests.clusters compare [--scheduler] [FIRST-LAST]``: scenarios on a real Karmada and on ``reballast up``.

With ``--scheduler``, on two Karmadas, one of them with ``reballast scheduler`` in place of its own scheduler.

Both have the same clusters. Each scenario has a namespace of its own, and all take their steps together: one write on
both sides, or reports of the clusters, then a wait until the states are equal or have ceased to change. A scenario ends
at its first difference.
"""

import itertools
import random
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import anyio
from msgspec import Struct

from tests.cli import servers
from tests.clusters.comparison import fleet_changes, reports, scenarios, states
from tests.clusters.comparison.planes import Plane
from tests.clusters.comparison.reports import Agents, WrittenStatuses
from tests.clusters.comparison.scenarios import Write
from tests.clusters.karmada import Karmada

_SEEDS: Final = "0-39"
_SCHEDULER: Final = "--scheduler"
_CONTEXT: Final = "karmada-apiserver"
_POLL_S: Final = 2.0
_CALM_S: Final = 20.0
"""Long enough for most retries of Karmada's controllers."""

_CONDITION_S: Final = 35.0
"""Within this time Reballast takes a new condition of a cluster; in Karmada, the agents that report it wait."""

_DISCOVERED_S: Final = 35.0
"""Within this time Karmada discovers new kinds."""

_LIMIT_S: Final = 120.0
_REPORTED: Final = 4
"""Clusters report at every fourth step."""

_CHANGED: Final = 3
"""A cluster, or a policy for taints, changes at every third step."""

_SHOWN: Final = 4
_CHARS: Final = 300
_EVICTIONS: Final = ("--enable-no-execute-taint-eviction=true", "--resource-eviction-rate=200")


class _Scenario(Struct):
    """A scenario that goes on; ``write`` is its last write."""

    seed: int
    writes: Iterator[Write]
    write: Write | None = None


def main(words: list[str]) -> int:
    """Compare the scenarios of a range of seeds; return 1 if there is a difference."""
    is_about_scheduler = words[:1] == [_SCHEDULER]
    first, _, last = "".join(words[is_about_scheduler:] or [_SEEDS]).partition("-")
    seeds = range(int(first), int(last or first) + 1)
    with (
        tempfile.TemporaryDirectory(prefix="reballast-comparison-") as named,
        Karmada(members=0, controller_options=_EVICTIONS) as karmada,
        ExitStack() as others,
    ):
        directory = Path(named) / "data"
        plane = Plane("Karmada", karmada.kubeconfig)
        if is_about_scheduler:
            second = others.enter_context(Karmada(members=0, controller_options=_EVICTIONS, schedules=False))
            others.enter_context(servers.scheduling(directory, second.kubeconfig, "default-scheduler"))
            other = Plane("Reballast", second.kubeconfig)
            return anyio.run(_compare, (plane, other), WrittenStatuses((plane, other)), seeds)
        others.enter_context(servers.running(directory, "--no-members"))
        other = Plane("Reballast", directory / "kubeconfig", _CONTEXT)
        return anyio.run(_compare, (plane, other), Agents(plane, directory), seeds)


async def _compare(planes: tuple[Plane, Plane], agents: Agents | WrittenStatuses, seeds: range) -> int:
    ends: Counter[str] = Counter()
    compared = 0
    running = [_Scenario(seed, scenarios.writes(seed)) for seed in seeds]
    async with anyio.create_task_group() as tasks:
        for plane in planes:
            await plane.join()
            await plane.prepare()
            tasks.start_soon(plane.renew)
            for seed in seeds:
                await plane.add_namespace(scenarios.namespace_of(seed))
        tasks.start_soon(agents.run)
        await anyio.sleep(_DISCOVERED_S)
        absent = ""
        for step in itertools.count(1):
            calm_s = _CALM_S
            if step % _CHANGED == 0:
                rng = random.Random(f"{seeds} {step}")  # noqa: S311  # an example, not a secret
                change = fleet_changes.drawn(rng, absent)
                absent = change.absent(absent)
                sys.stdout.write(f"{change}\n")
                for plane in planes:
                    await plane.change_fleet(change)
                if change.status is not None:
                    calm_s = _CONDITION_S
            elif step % _REPORTED == 0:
                await _report(planes[0], agents, running, step)
            else:
                running = [
                    scenario for scenario in running if await _has_taken_a_step(planes, scenario, ends)
                ]
            if not running:
                break
            compared += len(running)
            over = await _settled(planes, running, ends, calm_s)
            running = [scenario for scenario in running if scenario.seed not in over]
            sys.stdout.write(f"step {step}: {len(running)} scenarios go on\n")
        tasks.cancel_scope.cancel()
    for plane in planes:
        await plane.aclose()
    summary = ", ".join(f"{count} {end}" for end, count in sorted(ends.items()))
    sys.stdout.write(f"{compared} steps of {len(seeds)} scenarios compared; scenarios: {summary}\n")
    return 1 if ends["different"] else 0


async def _report(
    karmada: Plane, agents: Agents | WrittenStatuses, running: list[_Scenario], step: int
) -> None:
    """Let the clusters report on most of the Works of the running scenarios."""
    works: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for work in await karmada.works():
        works[work["spec"]["workload"]["manifests"][0]["metadata"].get("namespace", "")].append(work)
    for scenario in running:
        rng = random.Random(f"{scenario.seed} {step}")  # noqa: S311  # an example, not a secret
        await agents.report(list(reports.drawn(rng, works[scenarios.namespace_of(scenario.seed)])))


async def _has_taken_a_step(planes: tuple[Plane, Plane], scenario: _Scenario, ends: Counter[str]) -> bool:
    """Make the scenario's next write on both sides; return whether there was one, and both answered alike."""
    scenario.write = next(scenario.writes, None)
    if scenario.write is None:
        ends["equal to the end"] += 1
        return False
    refusals = [await plane.write(scenario.write) for plane in planes]
    if all(refusals) or not any(refusals):
        return True
    ends["different"] += 1
    _print(
        scenario,
        [f"{plane.name}: {text or 'accepted'}" for plane, text in zip(planes, refusals, strict=True)],
    )
    return False


async def _settled(
    planes: tuple[Plane, Plane], running: list[_Scenario], ends: Counter[str], settling_s: float
) -> set[int]:
    """Wait until the states are equal, or calm for so long; return the seeds of scenarios that end here."""
    until_s = time.monotonic() + _LIMIT_S
    calm_s, last = time.monotonic(), None
    while True:
        await anyio.sleep(_POLL_S)
        karmada, reballast = [await states.read(plane) for plane in planes]
        differing = {
            scenario.seed: texts
            for scenario in running
            if (texts := states.differences(karmada.get(scenario.seed, {}), reballast.get(scenario.seed, {})))
        }
        now_s = time.monotonic()
        if (karmada, reballast) != last:
            calm_s, last = now_s, (karmada, reballast)
        if not differing or now_s - calm_s > settling_s or now_s > until_s:
            break
    failing = await _failing_overrides(planes[0])
    for scenario in running:
        if scenario.seed not in differing:
            continue
        # Nothing is left of a scenario whose namespace is deleted.
        sides = karmada.get(scenario.seed, {}), reballast.get(scenario.seed, {})
        if states.is_tie(*sides):
            ends["ended by a tie"] += 1
        elif states.awaits_report(*sides):
            ends["ended by an eviction that waits for reports"] += 1
        elif states.has_recovered(*sides):
            ends["ended by a last running copy that recovered"] += 1
        elif states.repeats_failover(sides[0], differing[scenario.seed]):
            ends["ended by a failover that Karmada repeats"] += 1
        elif scenario.seed in failing:
            # Karmada makes no Work; Reballast makes one, whose agent reports the failure.
            ends["ended by an override that fails"] += 1
        else:
            ends["different"] += 1
            _print(scenario, differing[scenario.seed])
    return set(differing)


async def _failing_overrides(karmada: Plane) -> set[int | None]:
    """Return the seeds of scenarios in which override policies cannot be applied."""
    events = await karmada.items("/api/v1/events")
    return {
        states.seed_of(event["involvedObject"].get("namespace") or event["involvedObject"]["name"])
        for event in events
        if event["reason"] == "ApplyOverridePolicyFailed"
    }


def _print(scenario: _Scenario, texts: list[str]) -> None:
    sys.stdout.write(f"seed {scenario.seed} differs after: {scenario.write}\n")
    for text in texts[:_SHOWN]:
        sys.stdout.write(f"    {text[:_CHARS]}\n")
    sys.stdout.flush()
