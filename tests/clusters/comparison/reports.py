"""Random reports of agents on what runs in their clusters: as statuses of Karmada's Works, and sent to Reballast."""

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import httpx
import msgspec
from msgspec import Struct

from engine.agent import messages, statuses
from engine.agent.api_errors import RefusedError, UnreachableError
from engine.agent.gateway_client import GatewayClient
from engine.identity.endpoint import FILE, Endpoint
from events.json_values import Json, object_at, objects_at
from events.kube_objects import KubeObject
from events.vocabulary import EXECUTION_NAMESPACE_PREFIX
from tests.clusters.comparison import custom_kinds, fleet
from tests.clusters.comparison.planes import Plane

_FAULT: Final = "refused by the cluster"
_FAILS: Final = 0.1
_IS_SILENT: Final = 0.3
_TEMPLATE_GENERATION: Final = "resourcetemplate.karmada.io/generation"
_TIMES: Final = tuple(f"2026-01-01T00:00:0{second}Z" for second in range(1, 6))
_ADDRESSES: Final[tuple[tuple[Json, ...], ...]] = (
    ({"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}),
    ({"hostname": "a.example"}, {"hostname": "b.example"}),
)
"""Not mixed: as many host names as addresses of one cluster are shown as pairs."""
_RECONNECT_S: Final = 0.3


class Report(Struct, frozen=True):
    """A report on a Work of Karmada: its object as it runs in the cluster, or the fault that prevents it."""

    work: dict[str, Any]
    running: KubeObject
    fault: str = ""

    @property
    def cluster(self) -> str:
        return self.work["metadata"]["namespace"].removeprefix(EXECUTION_NAMESPACE_PREFIX)

    @property
    def status(self) -> Json:
        """The status of the Work in Karmada."""
        fails = bool(self.fault)
        applied = {
            "type": "Applied",
            "status": "False" if fails else "True",
            "reason": "AppliedFailed" if fails else "AppliedSuccessful",
            "message": f"Failed to apply all manifests (0/1): {self.fault}" if fails else "applied",
            "lastTransitionTime": _TIMES[0],
        }
        if fails:
            return {"conditions": [applied], "manifestStatuses": None}
        value = self.running
        group, _, version = value.type_meta[0].rpartition("/")
        identifier = {
            "ordinal": 0,
            "group": group,
            "version": version,
            "kind": value.type_meta[1],
            "resource": f"{value.type_meta[1].lower()}s",
            "namespace": value.namespace,
            "name": value.name,
        }
        shown: Json = {
            "identifier": identifier,
            "health": "Healthy" if statuses.object_state(value).healthy else "Unhealthy",
        }
        if reflected := _reflected(value):
            shown["status"] = reflected
        return {"conditions": [applied], "manifestStatuses": [shown]}


def drawn(rng: random.Random, works: Sequence[dict[str, Any]]) -> Iterator[Report]:
    """Yield reports on most of the Works; the others keep their statuses, and those of custom kinds have none."""
    for work in works:
        manifest = work["spec"]["workload"]["manifests"][0]
        if (manifest["apiVersion"], manifest["kind"]) in custom_kinds.SPECS:
            continue
        draw = _STATUSES.get(manifest["kind"], lambda _rng, _spec: {})
        generation = rng.choice((1, 1, 2))
        status = draw(rng, manifest.get("spec") or {})
        if manifest["kind"] == "CronJob":
            owned = {"namespace": manifest["metadata"]["namespace"]}
            status["active"] = [{**job, **owned} for job in objects_at(status, "active")]
        if manifest["kind"] in _REFLECTED:
            status["observedGeneration"] = rng.choice((generation, generation, 1))
        running: Json = {
            **manifest,
            "metadata": {**manifest["metadata"], "generation": generation},
            "status": status,
        }
        fault = _FAULT if rng.random() < _FAILS else ""
        if rng.random() >= _IS_SILENT:
            yield Report(work, KubeObject(running), fault)


def _replicas(rng: random.Random, spec: Json) -> Json:
    desired = int(str(spec.get("replicas", 1)))
    count = rng.choice((desired, desired, rng.randint(0, desired)))
    available = rng.choice((count, count, rng.randint(0, count)))
    numbers = {"replicas": count, "readyReplicas": count, "availableReplicas": available}
    updated = rng.choice((count, available))
    others = {
        "updatedReplicas": updated,
        "currentReplicas": available,
        "unavailableReplicas": count - available,
    }
    return {**numbers, **others}


def _daemons(rng: random.Random, _spec: Json) -> Json:
    nodes = rng.randint(0, 3)
    available = rng.choice((nodes, nodes, rng.randint(0, nodes)))
    return {
        "desiredNumberScheduled": nodes,
        "currentNumberScheduled": nodes,
        "updatedNumberScheduled": rng.choice((nodes, available)),
        "numberReady": available,
        "numberAvailable": available,
        "numberUnavailable": nodes - available,
    }


def _job(rng: random.Random, _spec: Json) -> Json:
    # No end and no lower count than before: the API server then refuses later statuses.
    return {"active": rng.randint(0, 2), "succeeded": 1, "startTime": _TIMES[0]}


def _cron_job(rng: random.Random, _spec: Json) -> Json:
    active = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": f"j{number}"} for number in range(rng.randint(0, 2))
    ]
    return {"active": active, "lastScheduleTime": rng.choice(_TIMES)}


def _ingress(rng: random.Random, _spec: Json) -> Json:
    return {"loadBalancer": {"ingress": rng.sample(rng.choice(_ADDRESSES), rng.randint(0, 2))}}


def _service(rng: random.Random, spec: Json) -> Json:
    count = rng.randint(1, 2) if spec.get("type") == "LoadBalancer" else 0
    return {"loadBalancer": {"ingress": rng.sample(rng.choice(_ADDRESSES), count)}}


def _limits(_rng: random.Random, spec: Json) -> Json:
    # Nothing is used: Reballast adds the use in clusters to that of bindings, Karmada shows one or the other.
    hard = object_at(spec, "hard")
    return {"hard": hard, "used": dict.fromkeys(hard, "0")}


def _numbers(*names: str) -> Callable[[random.Random, Json], Json]:
    return lambda rng, _spec: {name: rng.randint(0, 3) for name in names}


_STATUSES: Final[dict[str, Callable[[random.Random, Json], Json]]] = {
    "Deployment": _replicas,
    "StatefulSet": _replicas,
    "ReplicaSet": _replicas,
    "DaemonSet": _daemons,
    "Job": _job,
    "CronJob": _cron_job,
    "Ingress": _ingress,
    "Service": _service,
    "ResourceQuota": _limits,
    "Pod": lambda rng, _: {"phase": rng.choice(("Pending", "Running", "Succeeded", "Failed"))},
    "PersistentVolume": lambda rng, _: {"phase": rng.choice(("Available", "Bound", "Released", "Failed"))},
    "PersistentVolumeClaim": lambda rng, _: {"phase": rng.choice(("Bound", "Bound", "Pending", "Lost"))},
    "HorizontalPodAutoscaler": _numbers("currentReplicas", "desiredReplicas"),
    "PodDisruptionBudget": _numbers("currentHealthy", "desiredHealthy", "expectedPods", "disruptionsAllowed"),
}
_REFLECTED: Final = {
    "Deployment": ("updatedReplicas", "unavailableReplicas", "observedGeneration"),
    "StatefulSet": ("updatedReplicas", "currentReplicas"),
    "ReplicaSet": ("observedGeneration",),
    "DaemonSet": (
        *("currentNumberScheduled", "desiredNumberScheduled", "numberAvailable", "numberReady"),
        *("updatedNumberScheduled", "numberUnavailable", "observedGeneration"),
    ),
}
"""Fields that Karmada copies from the status in a cluster, in addition to those that all four kinds have."""


def _reflected(value: KubeObject) -> Json:
    """Return the status that Karmada's agent copies into a Work."""
    status = value.object_at("status")
    fields = _REFLECTED.get(value.type_meta[1])
    if fields is None:
        return {} if status.get("loadBalancer") == {"ingress": []} else status
    common = ("replicas", "readyReplicas", "availableReplicas")
    copied = {name: status[name] for name in (*common, *fields) if name in status}
    generation = int(str(value.annotations.get(_TEMPLATE_GENERATION, "0")))
    return {
        **copied,
        "generation": value.metadata["generation"],
        "resourceTemplateGeneration": generation,
    }


class WrittenStatuses:
    """In place of agents: writes statuses of Works to two Karmadas, whose Works have the same names."""

    def __init__(self, planes: tuple[Plane, Plane]) -> None:
        self._planes = planes

    async def run(self) -> None:
        """Release deleted Works until cancelled."""
        async with anyio.create_task_group() as tasks:
            for plane in self._planes:
                tasks.start_soon(plane.release_works)

    async def report(self, reports: Sequence[Report]) -> None:
        """Report to both planes; a Work that one of them does not have is left out there."""
        for report in reports:
            for plane in self._planes:
                await plane.write_status(report.work, report.status)


class Agents:
    """The agents of all clusters: they follow the works of Reballast, and report to both planes."""

    def __init__(self, karmada: Plane, directory: Path) -> None:
        self._karmada = karmada
        self._endpoint = msgspec.json.decode((directory / FILE).read_bytes(), type=Endpoint)
        self._controls: dict[str, GatewayClient] = {}
        self._works: defaultdict[str, dict[str, messages.Work]] = defaultdict(dict)
        self._batches = 0

    async def run(self) -> None:
        """Follow the works of all clusters until cancelled."""
        headers = {"authorization": f"Bearer {self._endpoint.token}"}
        async with (
            httpx.AsyncClient(headers=headers, trust_env=False) as owner,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(self._karmada.release_works)
            for name in fleet.NAMES:
                await self._authorize(owner, name)
                tasks.start_soon(self._follow, owner, name)

    async def _authorize(self, owner: httpx.AsyncClient, cluster: str) -> None:
        answer = await owner.post(f"{self._endpoint.url}/api/v1/agents/{cluster}/token")
        if answer.is_success:
            token = msgspec.json.decode(answer.content, type=messages.Token).token
            self._controls[cluster] = GatewayClient(self._endpoint.url, token, cluster)

    async def report(self, reports: Sequence[Report]) -> None:
        """Report to both planes; a Work that Reballast does not dispatch is left out."""
        applied = {
            (cluster, work.name): work
            for cluster, works in self._works.items()
            for work in works.values()
            if work.state == messages.APPLIED
        }
        batches: defaultdict[str, list[messages.Report]] = defaultdict(list)
        for report in reports:
            work = applied.get((report.cluster, report.work["metadata"]["name"]))
            if work is None:
                continue
            state = statuses.object_state(report.running, work.reading)
            fields = {} if report.fault else msgspec.structs.asdict(state)
            batches[report.cluster].append(
                messages.WorkloadReport(
                    key=work.key, term=work.term, step=work.step, fault=report.fault, **fields
                )
            )
            await self._karmada.write_status(report.work, report.status)
        for name, batch in batches.items():
            await self._send(name, batch)

    async def _follow(self, owner: httpx.AsyncClient, cluster: str) -> None:
        position: int | None = None
        while True:
            try:
                async for line in self._controls[cluster].follow(position):
                    position = position if line.position is None else line.position
                    if line.work is not None:
                        await self._take(cluster, line.work)
            except UnreachableError:
                await anyio.sleep(_RECONNECT_S)
            except RefusedError:
                # A cluster that left has no token; if it joined again, it needs a new one.
                await anyio.sleep(_RECONNECT_S)
                await self._authorize(owner, cluster)
                position = None

    async def _take(self, cluster: str, work: messages.Work) -> None:
        """Remember the newest work of each binding; confirm each removal at once."""
        works = self._works[cluster]
        known = works.get(work.key)
        if known is None or known.version <= work.version:
            works[work.key] = work
        if work.state == "removed":
            confirmation = messages.GoneReport(key=work.key, term=work.term, step=work.step)
            await self._send(cluster, [confirmation])

    async def _send(self, cluster: str, batch: list[messages.Report]) -> None:
        self._batches += 1
        await self._controls[cluster].report(f"batch-{self._batches}", batch)
