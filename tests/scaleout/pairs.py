"""Writes through one replica, each followed by a read through the other; and recovery times after faults."""

import asyncio
import random
import statistics
import time
from collections.abc import Sequence
from itertools import count
from typing import Any, Final

import httpx
import msgspec
from msgspec import Struct, field

from events import keys, topics
from tests.scaleout.installation import Installation
from tests.scaleout.processes import Api

ANSWERED_S: Final = 3.0
_LOADED: Final = 6
"""A slow machine needs more time for the same writes while it starts or replaces a process."""

_TIMEOUT_S: Final = 60.0
_READY_S: Final = 120.0
_MAPS: Final = "/api/v1/namespaces/default/configmaps"
_CLUSTER: Final = "/apis/cluster.karmada.io/v1alpha1/clusters/member1"
_POLICIES: Final = "/apis/policy.karmada.io/v1alpha1/namespaces/default/propagationpolicies"
_MERGE: Final = {"content-type": "application/merge-patch+json"}
_OK: Final = 200
_CREATED: Final = 201
_NOT_FOUND: Final = 404


class Figures(Struct):
    """Counts, errors and durations (in seconds) of a run."""

    writes: int = 0
    conflicts: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    pairs: int = 0
    stale: list[str] = field(default_factory=list)
    write_s: list[float] = field(default_factory=list)
    read_s: list[float] = field(default_factory=list)
    before_s: list[float] = field(default_factory=list)
    goes_on_s: list[float] = field(default_factory=list)

    def late(self) -> list[float]:
        """Return by how many seconds writes after a fault were slower than before it, where over the limit."""
        pairs = zip(self.before_s, self.goes_on_s, strict=True)
        return [after - before for before, after in pairs if after > ANSWERED_S + _LOADED * before]

    def wrong(self) -> list[object]:
        """Return all errors: conflicts, stale reads, unanswered writes and late recoveries."""
        return [*self.conflicts, *self.stale, *self.unanswered, *self.late()]

    def summary(self) -> str:
        """Return counts, durations and the first errors as text."""
        return "\n".join(
            [
                f"writes {self.writes}, conflicts {len(self.conflicts)}, not answered {len(self.unanswered)}",
                f"pairs {self.pairs}, stale {len(self.stale)}",
                f"write {_spread(self.write_s)}",
                f"read {_spread(self.read_s)}",
                f"a write in each partition before a fault {_spread(self.before_s)}",
                f"a write in each partition after a fault {_spread(self.goes_on_s)}",
                *[*self.conflicts, *self.stale, *self.unanswered][:20],
            ]
        )


class ReplicaClients:
    """HTTP clients for the Kubernetes API and the query API of a replica."""

    def __init__(self, api: Api) -> None:
        endpoint = msgspec.json.decode((api.data / "endpoint.json").read_bytes())
        headers = {"authorization": f"Bearer {endpoint['token']}"}
        limits = httpx.Limits(max_connections=64, max_keepalive_connections=64)
        self.name = api.name
        self.kube = httpx.AsyncClient(
            base_url=endpoint["kube_url"],
            headers=headers,
            timeout=_TIMEOUT_S,
            verify=False,  # noqa: S501  # loopback
            limits=limits,
            trust_env=False,
        )
        self.queries = httpx.AsyncClient(
            base_url=endpoint["url"], headers=headers, timeout=_TIMEOUT_S, limits=limits, trust_env=False
        )

    async def close(self) -> None:
        await self.kube.aclose()
        await self.queries.aclose()


async def play(replicas: Sequence[ReplicaClients], figures: Figures, pairs: int, writers: int) -> None:
    """Run this many pairs with this many concurrent clients."""
    numbers = iter(range(0, pairs, 3))

    async def client(index: int) -> None:
        chance = random.Random(f"{index}-{time.time_ns()}")  # noqa: S311  # choices of a test
        for number in numbers:
            await _life(chance, replicas, figures, f"pair-{chance.getrandbits(40):x}-{number}")

    await asyncio.gather(*(client(index) for index in range(writers)))


async def _life(
    chance: random.Random, replicas: Sequence[ReplicaClients], figures: Figures, name: str
) -> None:
    """Create, change and delete an object; after each write, read it through the other replica at once."""
    first, other = chance.sample(replicas, 2)
    if await _write(
        first, figures, _CREATED, "POST", _MAPS, {"metadata": {"name": name}, "data": {"n": "1"}}
    ):
        await _read(chance, other, figures, name, "1")
    if await _write(other, figures, _OK, "PATCH", f"{_MAPS}/{name}", {"data": {"n": "2"}}):
        await _read(chance, first, figures, name, "2")
    if await _write(first, figures, _OK, "DELETE", f"{_MAPS}/{name}", None):
        await _read(chance, other, figures, name, "")


async def _write(
    replica: ReplicaClients,
    figures: Figures,
    expected_status: int,
    method: str,
    path: str,
    body: dict[str, Any] | None,
) -> bool:
    """Send a write and return its success; no other client writes this object, so any failure is an error."""
    began_s = time.monotonic()
    figures.writes += 1
    try:
        headers = _MERGE if method == "PATCH" else None
        response = await replica.kube.request(method, path, json=body, headers=headers)
    except httpx.HTTPError as error:
        figures.unanswered.append(f"{method} {path} at {replica.name}: {error!r}")
        return False
    figures.write_s.append(time.monotonic() - began_s)
    if response.status_code == expected_status:
        return True
    is_conflict = response.status_code in (409, _NOT_FOUND)
    refusal = f"{method} {path} at {replica.name}: {response.status_code} {response.text[:200]}"
    (figures.conflicts if is_conflict else figures.unanswered).append(refusal)
    return False


async def _read(
    chance: random.Random, replica: ReplicaClients, figures: Figures, name: str, expected: str
) -> None:
    how = chance.choice(("get", "list", "query"))
    began_s = time.monotonic()
    try:
        if how == "get":
            response = await replica.kube.get(f"{_MAPS}/{name}")
            items = [response.json()] if response.status_code == _OK else []
        elif how == "list":
            response = await replica.kube.get(_MAPS, params={"fieldSelector": f"metadata.name={name}"})
            items = response.json()["items"]
        else:
            response = await replica.queries.get(
                "/api/v1/objects", params={"kind": "configmap", "name": name}
            )
            items = response.json()["items"]
    except (httpx.HTTPError, KeyError) as error:
        figures.unanswered.append(f"{how} {name} at {replica.name}: {error!r}")
        return
    if how == "get":
        figures.read_s.append(time.monotonic() - began_s)
    figures.pairs += 1
    values = [config_map.get("data", {}).get("n", "?") for config_map in items]
    if values != ([expected] if expected else []):
        figures.stale.append(f"{how} {name} at {replica.name}: {values}, not {expected!r}")


_numbers = count()


async def goes_on_s(replica: ReplicaClients, figures: Figures) -> float:
    """Return the seconds until one write to each input partition is answered."""
    began_s = time.monotonic()
    number = next(_numbers)
    spec: dict[str, Any] = {"resourceSelectors": [{"apiVersion": "v1", "kind": "Secret"}], "placement": {}}
    label = {"metadata": {"labels": {"round": str(number)}}}
    kind = {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy"}
    policy = {**kind, "metadata": {"name": f"round-{number}"}, "spec": spec}
    answered = await asyncio.gather(
        *(
            _write(replica, figures, _CREATED, "POST", _MAPS, {"metadata": {"name": name}})
            for name in _one_of_each_shard(f"round-{number}")
        ),
        _write(replica, figures, _OK, "PATCH", _CLUSTER, label),
        _write(replica, figures, _CREATED, "POST", _POLICIES, policy),
    )
    assert all(answered), figures.summary()
    return time.monotonic() - began_s


def _one_of_each_shard(prefix: str) -> list[str]:
    names: dict[int, str] = {}
    for number in count():
        name = f"{prefix}-{number}"
        names.setdefault(keys.shard_of(keys.binding_key("ConfigMap", "default", name)), name)
        if len(names) == topics.SHARDS:
            break
    return list(names.values())


async def fault(running: Installation, figures: Figures, kind: str, index: int, pairs: int = 12) -> None:
    """Kill or freeze a replica under load, write through the other, bring the first back, and run some pairs."""
    victim, other = running.apis[index % 2], running.apis[1 - index % 2]
    replica = ReplicaClients(other)
    try:
        figures.before_s.append(await goes_on_s(replica, figures))
        await asyncio.sleep(random.Random(index).uniform(0.0, 0.3))  # noqa: S311  # moments of a test
        if kind == "kill":
            victim.kill()
        else:
            victim.pause()
        figures.goes_on_s.append(await goes_on_s(replica, figures))
        if kind == "kill":
            victim.launch()
            await asyncio.to_thread(victim.wait_until, victim.answers, _READY_S)
        else:
            victim.resume()
        replicas = [replica, ReplicaClients(victim)]
        try:
            await play(replicas, figures, pairs, writers=2)
        finally:
            await replicas[1].close()
    finally:
        await replica.close()


def _spread(seconds: list[float]) -> str:
    if not seconds:
        return "never"
    ordered = sorted(seconds)
    late = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    return (
        f"median {statistics.median(ordered) * 1e3:.1f} ms, 99 % {late * 1e3:.1f} ms,"
        f" longest {ordered[-1] * 1e3:.0f} ms of {len(ordered)}"
    )
