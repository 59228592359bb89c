"""Benchmark: disk and memory of a control plane under mixed commands.

Clients create, scale, label, delete and list Deployments, of which at most ``DEPLOYMENTS`` exist at a time,
create rebalancers and taint a cluster, through the Kubernetes API of a server with the tutorial's members.
The number of objects stays about constant; only the log grows. Server and views run in processes of their
own.
"""

import asyncio
import contextlib
import random
import time
from pathlib import Path
from typing import Final

import httpx

from engine.bench import inputs, kube, kube_requests, processes, runs, timing
from engine.bench.runs import Figures, Progress
from engine.log.sqlite_reading import SqliteReader

DEPLOYMENTS: Final = 200
_CLIENTS: Final = 8
_REBALANCERS: Final = 4
"""Maximum number of rebalancers of a client."""

_QUARTERS: Final = (25, 50, 75, 100)
_SETTLE_S: Final = 3
_TIMEOUT_S: Final = 60
_MERGE: Final = {"content-type": "application/merge-patch+json"}
_OBJECTS: Final = kube_requests.DEPLOYMENTS
_REBALANCING: Final = "/apis/apps.karmada.io/v1alpha1/workloadrebalancers"
_CLUSTER: Final = "/apis/cluster.karmada.io/v1alpha1/clusters/member1"
_DEPLOYMENT: Final = {"apiVersion": "apps/v1", "kind": "Deployment"}
_POLICY: Final = inputs.policy(("member1", "member2", "member3"))


def run(commands: int, progress: Progress = lambda _: None) -> Figures:
    """Run the benchmark in a temporary directory; return the figures."""
    with runs.directory() as directory:
        figures = asyncio.run(_measured(commands, directory / "run", progress))
        # The server has stopped and checkpointed its write-ahead logs, so file sizes are final.
        size = sum(path.stat().st_size for path in (directory / "run").rglob("*") if path.is_file())
    return figures | {"disk_mb": round(size / 2**20, 1), "bytes_per_command": round(size / commands)}


class _Client:
    """One client with its own objects; seeded, so that its sequence of commands is reproducible."""

    def __init__(self, http: httpx.AsyncClient, number: int) -> None:
        self._http = http
        self._number = number
        self._random = random.Random(number)  # noqa: S311  # a seeded generator makes runs comparable
        self._names: list[str] = []
        self._rebalancers: list[str] = []
        self._sent = 0

    async def command(self) -> None:
        """Send the next command; raises httpx.HTTPStatusError if it is refused."""
        self._sent += 1
        chance = self._random.random()
        if not self._names or (chance < 0.4 and len(self._names) < DEPLOYMENTS // _CLIENTS):  # noqa: PLR2004
            await self._create()
        elif chance < 0.75:  # noqa: PLR2004
            await self._patch(
                f"{_OBJECTS}/{self._any()}",
                {"spec": {"replicas": self._random.randint(1, 9)}},
            )
        elif chance < 0.85:  # noqa: PLR2004
            await self._patch(f"{_OBJECTS}/{self._any()}", {"metadata": {"labels": {"x": str(self._sent)}}})
        elif chance < 0.9:  # noqa: PLR2004
            name = self._names.pop(self._random.randrange(len(self._names)))
            (await self._http.delete(f"{_OBJECTS}/{name}")).raise_for_status()
        elif chance < 0.92:  # noqa: PLR2004
            await self._rebalance()
        elif chance < 0.93 and not self._number:  # noqa: PLR2004
            taints = [] if self._sent % 2 else [{"key": "mixed", "effect": "NoSchedule"}]
            await self._patch(_CLUSTER, {"spec": {"taints": taints}})
        else:
            (await self._http.get(f"{_OBJECTS}?limit=50")).raise_for_status()

    async def _create(self) -> None:
        name = f"web-{self._number}-{self._sent}"
        labels = {"app": name}
        container = {"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "10m"}}}
        spec = {
            "replicas": self._random.randint(1, 9),
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        }
        metadata = {"name": name, "namespace": "default", "labels": labels}
        body = {**_DEPLOYMENT, "metadata": metadata, "spec": spec}
        (await self._http.post(_OBJECTS, json=body)).raise_for_status()
        self._names.append(name)

    async def _rebalance(self) -> None:
        if len(self._rebalancers) == _REBALANCERS:
            (await self._http.delete(f"{_REBALANCING}/{self._rebalancers.pop(0)}")).raise_for_status()
            return
        name = f"mixed-{self._number}-{self._sent}"
        body = inputs.rebalancer_manifest(name, self._names[:3])
        (await self._http.post(_REBALANCING, json=body)).raise_for_status()
        self._rebalancers.append(name)

    async def _patch(self, path: str, change: dict[str, object]) -> None:
        (await self._http.patch(path, json=change, headers=_MERGE)).raise_for_status()

    def _any(self) -> str:
        return self._random.choice(self._names)


async def _measured(commands: int, directory: Path, progress: Progress) -> Figures:
    figures: Figures = {"commands": commands, "clients": _CLIENTS}
    async with kube.served(directory, "tutorial") as server:
        figures |= await _resources(server.pid, directory, 0)
        limits = httpx.Limits(max_connections=_CLIENTS)
        async with httpx.AsyncClient(
            base_url=server.endpoint.kube_url,
            headers={"authorization": f"Bearer {server.endpoint.token}"},
            verify=server.secured,
            timeout=_TIMEOUT_S,
            limits=limits,
        ) as http:
            await server.write(kube_requests.POLICIES, _POLICY.value)
            clients = [_Client(http, number) for number in range(_CLIENTS)]
            sent = 0
            start = time.perf_counter()
            for quarter in _QUARTERS:
                progress(f"{sent} of {commands} commands")
                await timing.divide(
                    clients, commands * quarter // 100 - sent, lambda client, _: client.command()
                )
                sent = commands * quarter // 100
                figures |= await _resources(server.pid, directory, quarter)
            figures["commands_per_s"] = round(commands / (time.perf_counter() - start), 1)
        # Wait for the records that follow from the last commands: they are counted too.
        await asyncio.sleep(_SETTLE_S)
        figures["records_per_command"] = round(await _records(directory) / commands, 1)
    return figures


async def _resources(pid: int, directory: Path, quarter: int) -> Figures:
    """Figures at ``quarter`` percent of the commands: records in the log; MiB of server, views and SQLite files."""

    def measure() -> Figures:
        size = sum(path.stat().st_size for path in directory.rglob("*.sqlite*"))
        return {
            f"server_mb_{quarter}": round(processes.resident_of(pid), 1),
            f"views_mb_{quarter}": round(processes.resident_of(*processes.children(pid)), 1),
            f"files_mb_{quarter}": round(size / 2**20, 1),
        }

    return {f"records_{quarter}": await _records(directory), **await asyncio.to_thread(measure)}


async def _records(directory: Path) -> int:
    async with contextlib.aclosing(await asyncio.to_thread(SqliteReader, directory)) as reader:
        return reader.last_number()
