"""Checker of invariants 1, 2 and 8 for the views: independent of the folding, and equal to the shards' state.

The views are read through the query functions and JSON, as clients do; the shards through their state.
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from engine.deciders import state as states
from engine.domain.bindings import Claim
from engine.reconcilers import worker
from events import codec, decisions, keys, specs, times, topics
from events.validation import manifests, verdicts
from projections import bindings, clusters, query
from projections.port import ResultRow, Rows
from projections.runner import Projector
from projections.store import Store
from tests.builders.documents import document_of
from tests.builders.log_records import all_records
from tests.simulation import world

Dump = dict[str, list[ResultRow]]
Key = TypeVar("Key", str, tuple[str, str])

_LOOKS = 4
_BATCHES = (1, 3, 17, 100)
_NUMBER = {"bindings": 1, "clusters": 1, "objects": 6, "rebalancers": 1}
"""Views whose rows contain the record number shown to clients, and the column of that number."""

_MANIFEST = 13
"""Column of an object row that holds its manifest."""

_HAS_STATUS = "federatedresourcequota:"
"""Prefix of the keys of objects whose status moves their number too."""


class Placed(Struct, frozen=True, kw_only=True):
    """Comparable content of a binding."""

    generation: int
    replicas: int | None
    clusters: list[tuple[str, int]]
    reason: str
    message: str
    affinity: str
    policy: dict[str, str]
    placement: object
    applied: object
    evictions: list[tuple[str, int, str, str | None]]
    is_unscheduled: bool
    suspended: bool | list[str]
    propagates: bool
    dependencies: list[tuple[str, str]]
    required_by: list[tuple[str, list[str]]]


class Rebalanced(Struct, frozen=True, kw_only=True):
    """Comparable content of a rebalancer; workloads in order with result and reason."""

    generation: int
    observed_generation: int
    finish_time: str | None
    workloads: list[tuple[str, str, str]]


async def check(played: world.World, taken: Sequence[verdicts.Taken]) -> list[str]:
    """Return the errors of the views of a stable world; ``taken`` are all accepted inputs in order."""
    whole = await asyncio.to_thread(Store)
    await _fold(played, whole, played.log.last_number(), 4_096)
    violations = await _however_they_were_folded(played, await asyncio.to_thread(whole.dump), taken)
    violations += await asyncio.to_thread(_decision_differences, whole, played.worker)
    await asyncio.to_thread(whole.close)
    return violations


def _decision_differences(store: Store, live: worker.Worker) -> list[str]:
    """Invariant 1: the views contain every decision exactly once."""
    with store.reading() as rows:
        return [
            *_bindings(rows, live),
            *_rebalancers(rows, live),
            *_works(rows, live),
            *_clusters(rows, live),
        ]


async def _fold(played: world.World, store: Store, number: int, batch: int) -> None:
    """Fold up to a number with a new projector, as a restarted process does."""
    projector = Projector(played.log, store, manifests.check, batch_records_max=batch)
    await projector.fold_to(number)
    projector.close()


async def _however_they_were_folded(
    played: world.World, whole: Dump, taken: Sequence[verdicts.Taken]
) -> list[str]:
    """Invariants 2 and 8: batch sizes and restarts do not matter, and each look contains all writes up to it."""
    chance, end = played.chance, played.log.last_number()
    changing = await _changing_templates(played)
    store = await asyncio.to_thread(Store)
    violations: list[str] = []
    seen: Dump = {}
    for number in [*sorted(chance.choices(range(1, end), k=_LOOKS)), end]:
        await _fold(played, store, number, chance.choice(_BATCHES))
        now = await asyncio.to_thread(store.dump)
        violations += _numbers_grow(seen, now, number)
        violations += _writes_are_seen(now, number, taken, changing)
        seen = now
    await asyncio.to_thread(store.close)
    return violations + [
        f"2: view {table}: {seen[table]} after restarts, {rows} in one go"
        for table, rows in whole.items()
        if seen[table] != rows
    ]


def _numbers_grow(before: Dump, now: Dump, end: int) -> Iterator[str]:
    for table, column in _NUMBER.items():
        known = {row[0]: row for row in before.get(table, [])}
        for row in now[table]:
            number, former = row[column], known.get(row[0], row)
            if number > end:
                yield f"8: view {table}: {row} is of a record after {end}"
            elif number <= former[column] and _shown(table, row) != _shown(table, former):
                yield f"8: view {table}: {row} has no higher number than {former}"


def _shown(table: str, row: ResultRow) -> object:
    """Return the part of a row that clients see, without the time of a cluster's last report."""
    if table == "bindings":
        binding = bindings.decode(row[4])
        # Clients see the generation of the last success. It is stored at the end of a step.
        return row[:4], msgspec.structs.replace(binding, observed_generation=binding.scheduled_generation)
    if table != "clusters":
        return row
    cluster = clusters.decode(row[2])
    if cluster.health is None:
        return cluster
    return msgspec.structs.replace(cluster, health=msgspec.structs.replace(cluster.health, heard_ms=0))


async def _changing_templates(played: world.World) -> dict[str, set[int]]:
    """Return the numbers of the decisions that changed a rendered template, by its key: its marks, or no binding."""
    result: dict[str, set[int]] = {}
    for record in await all_records(played.log):
        match codec.decode(record) if record.topic == topics.DECISIONS else None:
            case codec.Decoded(
                data=decisions.BindingWithdrawn(key=key)
                | decisions.BindingReleased(key=key)
                | decisions.TemplateMarked(key=key)
            ):
                result.setdefault(key, set()).add(record.number)
            case _:
                pass
    return result


def _writes_are_seen(
    now: Dump, end: int, taken: Sequence[verdicts.Taken], changing: Mapping[str, Collection[int]]
) -> Iterator[str]:
    written: dict[str, tuple[int, bytes]] = {}
    for verdict in taken:
        record = verdict.record
        if record.number > end or record.topic not in (topics.SPECS, topics.POLICIES):
            continue
        if isinstance(verdict.data, specs.DeletionAllowed | specs.SuspensionWritten):
            continue  # not a write of the template
        manifest: msgspec.Raw | None = getattr(verdict.data, "manifest", None)
        if manifest is None:
            written.pop(record.key, None)
        else:
            written[record.key] = (record.number, bytes(manifest))
    names = dict(now["keys"])
    shown = {names[row[0]]: (row[_NUMBER["objects"]], row[_MANIFEST]) for row in now["objects"]}
    for key in {**written, **shown}:
        number, manifest = shown.get(key, (0, b""))
        is_moved = key.startswith(_HAS_STATUS) or number in changing.get(key, ())
        if key in written and is_moved and number > written[key][0]:
            number = written[key][
                0
            ]  # its status was found out, its mark changed, or its binding ended, later
        if (number, manifest) != written.get(key, (0, b"")):
            yield f"8: at {end} {key} is {shown.get(key)}, written was {written.get(key)}"


def _bindings(rows: Rows, live: worker.Worker) -> Iterator[str]:
    shown = {
        keys.full_name(item["metadata"].get("namespace", ""), item["metadata"]["name"]): _shown_binding(item)
        for item in _read(query.list_bindings(rows))
    }
    expected = {
        key: _held_binding(fold.state, binding, binding.declared)
        for fold in live.folds
        for key, binding in fold.state.bindings.items()
        if binding.declared is not None
    }
    return _differences("bindings", shown, expected)


def _shown_binding(item: dict[str, Any]) -> Placed:
    metadata, spec, status = item["metadata"], item["spec"], item["status"]
    marks = metadata.get("labels", {}) | metadata.get("annotations", {})
    nothing: dict[str, Any] = {}
    scheduled = next(
        (condition for condition in status["conditions"] if condition["type"] == "Scheduled"), nothing
    )
    reason = scheduled.get("reason", "")
    marks.pop("resourcebinding.karmada.io/permanent-id", None)
    marks.pop("clusterresourcebinding.karmada.io/permanent-id", None)
    # The values are ids of the bindings that depend on this one; those are compared by their names, below.
    marks = {name: text for name, text in marks.items() if "/depended-by-" not in name}
    applied = marks.pop("policy.karmada.io/applied-placement", "null")
    noted = marks.pop("resourcebinding.karmada.io/dependencies", "null")
    dependencies: list[dict[str, Any]] = msgspec.json.decode(noted) or []
    # Without a policy the spec keeps the last policy's fields, which the shard drops.
    claimed = spec if marks else nothing
    held_back = claimed.get("suspension", {})
    return Placed(
        generation=metadata["generation"],
        replicas=spec.get("replicas"),
        clusters=[(target["name"], target.get("replicas", 0)) for target in spec.get("clusters", [])],
        reason=reason,
        message="" if reason == "Success" else scheduled.get("message", ""),
        affinity=status.get("schedulerObservingAffinityName", ""),
        policy=marks,
        placement=claimed.get("placement"),
        applied=msgspec.json.decode(applied),
        evictions=[
            (task["fromCluster"], task.get("replicas", 0), task["purgeMode"], task["creationTimestamp"])
            for task in spec.get("gracefulEvictionTasks", [])
        ],
        is_unscheduled=spec.get("suspension", {}).get("scheduling", False),
        suspended=held_back.get("dispatching", False)
        or held_back.get("dispatchingOnClusters", {}).get("clusterNames", False),
        propagates=claimed.get("propagateDeps", False),
        dependencies=[(dependency["kind"], dependency["name"]) for dependency in dependencies],
        required_by=[
            (
                f"{requirer['namespace']}/{requirer['name']}",
                [target["name"] for target in requirer.get("clusters", [])],
            )
            for requirer in spec.get("requiredBy", [])
        ],
    )


def _held_binding(shard: states.ShardState, binding: states.Binding, declared: states.Declared) -> Placed:
    claim, distributed, needs = binding.claim, binding.distributed, shard.needs.get(binding.key, {})
    return Placed(
        generation=binding.generation,
        replicas=declared.replicas or None,
        # Without an interpreter a custom kind has no replicas, although an older decision may have divided them.
        clusters=[(name, 0 if declared.replicas is None else count) for name, count in binding.clusters],
        reason=binding.condition,
        message=binding.message,
        affinity=binding.affinity,
        policy=_marks(claim) if claim else {},
        placement=msgspec.json.decode(shard.placements[claim.placement]) if claim else None,
        applied=msgspec.json.decode(shard.placements[binding.applied]) if binding.applied else None,
        evictions=[
            (task.cluster, task.replicas, task.purge_mode, times.to_seconds_text(task.created_ms or 0))
            for task in binding.tasks
        ],
        is_unscheduled=binding.suspension.scheduling,
        suspended=bool(claim)
        and (claim.suspended or binding.suspension.dispatching or list(claim.suspended_on) or False),
        propagates=claim is not None and claim.propagate_deps,
        dependencies=[(dependency.kind, dependency.name) for dependency in distributed.dependencies]
        if distributed
        else [],
        required_by=[
            (by, list(needs[by].applied.clusters)) for by in sorted(needs) if needs[by].applied.clusters
        ],
    )


def _marks(claim: Claim) -> dict[str, str]:
    domain = f"{claim.policy.kind.lower()}.karmada.io"
    return {
        f"{domain}/permanent-id": claim.permanent_id,
        f"{domain}/name": claim.policy.name,
        **({f"{domain}/namespace": claim.policy.namespace} if claim.policy.namespace else {}),
    }


def _rebalancers(rows: Rows, live: worker.Worker) -> Iterator[str]:
    shown = {
        item["metadata"]["name"]: _shown_rebalancer(item) for item in _read(query.list_rebalancers(rows))
    }
    expected = {
        rebalancer.name: Rebalanced(
            generation=rebalancer.generation,
            observed_generation=rebalancer.started,
            finish_time=times.to_seconds_text(rebalancer.finish_ms) if rebalancer.finish_ms else None,
            workloads=[
                (order, seen.result, seen.reason) for order, seen in sorted(rebalancer.observed.items())
            ],
        )
        for fold in live.folds
        for rebalancer in fold.state.rebalancers.values()
    }
    return _differences("rebalancers", shown, expected)


def _shown_rebalancer(item: dict[str, Any]) -> Rebalanced:
    status = item["status"]
    observed: list[tuple[str, str, str]] = []
    for observed_workload in status.get("observedWorkloads", []):
        ref = observed_workload["workload"]
        order = f"{ref['apiVersion']} {ref['kind']} {ref.get('namespace', '')} {ref['name']}"
        observed.append((order, observed_workload.get("result", ""), observed_workload.get("reason", "")))
    return Rebalanced(
        generation=item["metadata"]["generation"],
        observed_generation=status.get("observedGeneration", 0),
        finish_time=status.get("finishTime"),
        workloads=observed,
    )


def _works(rows: Rows, live: worker.Worker) -> Iterator[str]:
    """Compare works; the view shows a suspended work as the one that the cluster had before, if any."""
    shown = {
        (item["cluster"], item["binding"]): (
            "suspended" if item["suspended"] else item.get("replicas", -1),
            item["version"]["term"],
            item["version"]["step"],
        )
        for item in _read(query.list_works(rows))
    }
    expected = {
        (cluster, key): ("suspended" if work.suspended else work.replicas, work.term, work.step)
        for fold in live.folds
        for key, binding in fold.state.bindings.items()
        for cluster, work in binding.works.items()
        if not work.suspended or (cluster, key) in shown
    }
    return _differences("works", shown, expected)


def _clusters(rows: Rows, live: worker.Worker) -> Iterator[str]:
    shown = {
        item["metadata"]["name"]: (
            item["metadata"].get("labels", {}),
            {(taint["key"], taint["effect"]) for taint in item["spec"].get("taints", [])},
        )
        for item in _read(query.list_clusters(rows))
    }
    expected = {
        name: (
            cluster.metadata.labels,
            {(taint.key, taint.effect) for taint in cluster.spec.taints},
        )
        for name in live.facts.fleet.names()
        if (cluster := live.facts.fleet.get(name)) is not None
    }
    return _differences("clusters", shown, expected)


def _read(page: query.Page[Any]) -> list[dict[str, Any]]:
    """Return the items of a page as a client decodes them."""
    assert not page.after
    return msgspec.json.decode(msgspec.json.encode(page.items, enc_hook=document_of))


def _differences(view: str, shown: Mapping[Key, object], expected: Mapping[Key, object]) -> Iterator[str]:
    for key in {**expected, **shown}:
        if shown.get(key) != expected.get(key):
            yield f"1: view {view}: {key} is {shown.get(key)}, not {expected.get(key)} as the shard holds it"
