"""kill -9 at random times under load: every acknowledged write is stored, and none twice."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec
import pytest

from engine.cli import server_reads
from engine.cli.client import Client
from engine.log import sqlite
from engine.objects import bindings
from engine.proof.verification import Report
from events import codec, rebalance_decisions, specs
from events.json_values import Json, object_at, objects_at
from tests import waiting, writes
from tests.faults.load_objects import COUNT, POLICY, TAINT
from tests.faults.loads import ABSENT, Ledger, Writer
from tests.processes import Server
from tests.rounds import ROUNDS

KILLS: Final = 4 * ROUNDS
WRITERS: Final = 3
SEED: Final = "kill"
LOADED_SECONDS: Final = (0.02, 0.8)
"""How long the server bears the load until it is killed."""
STARTING_SECONDS: Final = (0.1, 1.5)
"""When it is killed while it starts."""
_SETTLE_SECONDS: Final = 120.0
_Thing = TypeVar("_Thing")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_server_killed_at_random_times_keeps_all_acknowledged_writes(server: Server) -> None:
    chance = random.Random(SEED)  # noqa: S311  # moments of a test
    ledger = Ledger()
    with Client(server.directory) as client:
        writes.apply(client, POLICY)

    for kill in range(KILLS):
        if kill % 4 == 3:
            server.kill()
            server.launch()
            time.sleep(chance.uniform(*STARTING_SECONDS))
        else:
            _kill_under_load(server, ledger, f"{SEED} {kill}", chance.uniform(*LOADED_SECONDS))
        server.kill()
        server.start()
        _assert_nothing_is_lost(server.directory, ledger)

    _until_members_run_what_bindings_say(server.directory)
    with Client(server.directory) as client:
        assert client.verify(Report).findings == []
    assert server.stop() == 0
    asyncio.run(_assert_nothing_is_there_twice(server.directory, ledger))
    assert len(ledger.applied) > KILLS
    print(f"{KILLS} kills, {len(ledger.applied)} objects applied, slowest start {max(server.starts_s):.2f} s")  # noqa: T201


def _kill_under_load(server: Server, ledger: Ledger, seed: str, seconds: float) -> None:
    writers = [Writer(index, server.directory, ledger, f"{seed} {index}") for index in range(1, WRITERS + 1)]
    kind = "w" if ledger.applied else "r"
    for writer in writers:
        writer.start()
    _until_applied(ledger, kind)
    time.sleep(seconds)
    server.kill()
    for writer in writers:
        writer.stopping.set()
        writer.join(_SETTLE_SECONDS)
        assert not writer.is_alive()
        assert writer.wrong == []


def _until_applied(ledger: Ledger, kind: str) -> None:
    """Wait until one more object, whose name begins with ``kind``, is acknowledged."""
    before = set(ledger.applied)
    waiting.until(
        lambda: any(name.startswith(kind) for name, _ in set(ledger.applied) - before),
        lambda: "no write was acknowledged",
        _SETTLE_SECONDS,
        pause_s=0.01,
    )


def _assert_nothing_is_lost(directory: Path, ledger: Ledger) -> None:
    with Client(directory) as client:
        states = _states(client)
        keys = [bindings.of(binding).key for binding in server_reads.objects(client, "bindings")]
    for name in {*ledger.acknowledged, *ledger.tried}:
        state = states.get(name, ABSENT)
        assert ledger.allows(name, state), (
            name,
            state,
            ledger.acknowledged.get(name),
            ledger.tried.get(name),
        )
        ledger.settle(name, state)
    assert len(keys) == len(set(keys))


def _states(client: Client) -> dict[str, str]:
    """Return the count of each Deployment and rebalancer, and the taint of each cluster."""
    states: dict[str, str] = {}
    for path, query in (("objects", {"kind": "deploy"}), ("rebalancers", {})):
        for kube_object in server_reads.objects(client, path, **query):
            annotations = kube_object.annotations
            states[kube_object.name] = str(annotations.get(COUNT, ABSENT))
    for kube_object in server_reads.objects(client, "clusters"):
        taints = kube_object.objects_at("spec", "taints")
        values = [str(taint["value"]) for taint in taints if taint["key"] == TAINT]
        assert len(values) <= 1
        states[kube_object.name] = values[0] if values else ABSENT
    return states


def _until_members_run_what_bindings_say(directory: Path) -> None:
    deadline = time.monotonic() + _SETTLE_SECONDS
    with Client(directory) as client:
        while (expected := _assigned_replicas(client)) != (running := _running(client)):
            assert time.monotonic() < deadline, (expected, running)
            time.sleep(0.1)


def _assigned_replicas(client: Client) -> dict[tuple[str, str], int]:
    return {
        (binding.key, target.name): target.replicas or 0
        for binding in map(bindings.of, server_reads.objects(client, "bindings"))
        for target in binding.spec.clusters
    }


def _running(client: Client) -> dict[tuple[str, str], int]:
    workloads = objects_at(client.get("members/workloads", Json, limit=10_000), "items")
    return {
        (str(workload["key"]), str(workload["cluster"])): int(str(workload["ready"]))
        for workload in workloads
    }


async def _assert_nothing_is_there_twice(directory: Path, ledger: Ledger) -> None:
    log = await sqlite.SqliteLog.open(directory)
    try:
        stored = await log.read_all(0, log.last_number())
    finally:
        await log.aclose()
    events = [event for event in map(codec.decode, stored) if isinstance(event, codec.Decoded)]
    assert len(events) == len(stored)
    _assert_once(Counter((event.envelope.source, event.envelope.id) for event in events))
    applied = Counter(_applied(event) for event in events)
    del applied["", ""]
    _assert_once(applied)
    assert ledger.applied <= applied.keys()
    finished = [
        event.data for event in events if isinstance(event.data, rebalance_decisions.RebalanceFinished)
    ]
    _assert_once(Counter((event.uid, event.generation) for event in finished))
    results = [
        event.data for event in events if isinstance(event.data, rebalance_decisions.WorkloadRebalanced)
    ]
    _assert_once(Counter((event.uid, event.generation, event.workload) for event in results))
    assert finished


def _applied(event: codec.Decoded) -> tuple[str, str]:
    """Return name and count of an applied object; empty for any other event."""
    match event.data:
        case specs.TemplateApplied(manifest=manifest) | specs.RebalancerApplied(manifest=manifest):
            metadata = object_at(msgspec.json.decode(manifest), "metadata")
            return str(metadata.get("name", "")), str(object_at(metadata, "annotations").get(COUNT, ""))
        case _:
            return "", ""


def _assert_once(counted: Mapping[_Thing, int]) -> None:
    assert [key for key, count in counted.items() if count > 1] == []
