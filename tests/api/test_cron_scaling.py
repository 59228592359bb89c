"""CronFederatedHPAs scale their targets at the times of their rules, and record it in their status."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import httpx
import pytest

from engine.controllers.controller import Access, Objects
from engine.controllers.cron_scaling import CronScaling
from engine.http.kube.app import create_app
from engine.http.services import Services
from engine.kubeapi.schema.resources import Catalogue, Resource
from engine.log.local import MemoryLog
from engine.log.port import LogError, OutcomeUnknownError
from events.json_values import Json, at, object_at, objects_at
from events.kube_objects import KubeObject
from events.records import Record, StoredRecord
from tests.api.kube.client import api
from tests.api.servers import NOW_MS
from tests.builders.inputs import configuration
from tests.builders.log_records import record
from tests.builders.manifests import manifest
from tests.kube.oracle.objects import deployment

MINUTE_MS: Final = 60_000
GROUP: Final = "autoscaling.karmada.io/v1alpha1"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
SCALERS: Final = f"/apis/{GROUP}/namespaces/default/cronfederatedhpas"
LIMITED: Final = f"/apis/{GROUP}/namespaces/default/federatedhpas"
DEPLOYMENT: Final[Json] = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "one"}
MERGE: Final = {"content-type": "application/merge-patch+json"}


class Clock:
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.ms = NOW_MS

    def __call__(self) -> int:
        return self.ms


class World:
    """An API, and a controller that has followed all of it."""

    def __init__(self, client: httpx.AsyncClient, services: Services) -> None:
        self.client = client
        self.clock = Clock()
        self.objects = create_app(services, self.clock).plane
        self._services = services
        self._scaling = self.server(self.objects)
        self._number = -1

    def server(self, objects: Objects) -> CronScaling:
        """The controller of a server that reads these objects."""
        return CronScaling(Access(self._services, objects, self._services.write_api, self.clock))

    async def create(self, rule: Json, target: Json = DEPLOYMENT) -> None:
        spec: Json = {"scaleTargetRef": target, "rules": [{"name": "up", "schedule": "* * * * *", **rule}]}
        body = manifest(GROUP, "CronFederatedHPA", "cron", namespace="default", spec=spec)
        assert (await self.client.post(SCALERS, json=body)).status_code == 201
        await self.after(0)

    async def patch(self, spec: Json) -> None:
        """Change the spec of the scaler, and let the controller see it."""
        answered = await self.client.patch(f"{SCALERS}/cron", json={"spec": spec}, headers=MERGE)
        assert answered.status_code == 200
        await self.after(0)

    async def write(self, spec: Json, name: str) -> None:
        """Write a scaler as a producer does, which the Kubernetes API's checks do not see."""
        body = manifest(GROUP, "CronFederatedHPA", name, namespace="default", spec=spec)
        (stored,) = await self._services.log.append([record(configuration(body))])
        await self._services.views.wait_folded(stored.number)

    async def after(self, minutes: float) -> None:
        """Let the controller see the present, move the clock on, and let it do what is due."""
        self._number = await self._scaling.turn(self._number)
        self.clock.ms += int(minutes * MINUTE_MS)
        self._number = await self._scaling.turn(self._number)

    async def get(self, path: str) -> Json:
        answered: Json = (await self.client.get(path)).json()
        return answered

    async def replicas(self) -> object:
        return at(await self.get(f"{DEPLOYMENTS}/one"), "spec", "replicas")

    async def histories(self) -> list[Json]:
        return objects_at(await self.get(f"{SCALERS}/cron"), "status", "executionHistories")


@asynccontextmanager
async def a_world() -> AsyncGenerator[World]:
    async with api() as (client, services):
        assert (await client.post(DEPLOYMENTS, json=deployment("one"))).status_code == 201
        yield World(client, services)


class SlowReads:
    """Objects as a slow server reads them: after its next read, another server does what ``meanwhile`` contains."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.meanwhile: list[Callable[[], Awaitable[None]]] = []

    async def catalogue(self) -> Catalogue:
        return await self._objects.catalogue()

    async def current(self, resource: Resource, namespace: str, name: str) -> KubeObject | None:
        value = await self._objects.current(resource, namespace, name)
        if self.meanwhile:
            await self.meanwhile.pop()()
        return value


async def test_rule_scales_its_target_when_it_is_due_and_not_before() -> None:
    async with a_world() as world:
        await world.create({"targetReplicas": 4})
        assert await world.replicas() == 2
        await world.after(1)
        assert await world.replicas() == 4
        (history,) = await world.histories()
        assert history["successfulExecutions"] == [
            {
                "scheduleTime": "2024-05-25T09:50:00Z",
                "executionTime": "2024-05-25T09:50:51Z",
                "appliedReplicas": 4,
            }
        ]
        assert (history["ruleName"], history["nextExecutionTime"]) == ("up", "2024-05-25T09:51:00Z")


async def test_next_time_of_a_rule_is_shown_from_its_creation_until_it_is_suspended() -> None:
    async with a_world() as world:
        await world.create({"targetReplicas": 4, "schedule": "0 12 * * *"})
        assert await world.histories() == [{"ruleName": "up", "nextExecutionTime": "2024-05-25T12:00:00Z"}]
        rule = {"name": "up", "schedule": "0 13 * * *", "targetReplicas": 4}
        await world.patch({"rules": [rule]})
        assert await world.histories() == [{"ruleName": "up", "nextExecutionTime": "2024-05-25T13:00:00Z"}]
        await world.patch({"rules": [{**rule, "suspend": True}]})
        assert await world.histories() == [{"ruleName": "up"}]


async def test_rule_is_due_again_soon_after_a_clock_that_was_ahead_is_corrected() -> None:
    async with a_world() as world:
        await world.create({"targetReplicas": 4})
        await world.after(-60)
        assert await world.replicas() == 2
        await world.after(1)
        assert await world.replicas() == 4


async def test_corrected_clock_repeats_no_execution() -> None:
    async with a_world() as world:
        await world.create({"targetReplicas": 4})
        await world.after(1)
        await world.client.patch(f"{DEPLOYMENTS}/one", json={"spec": {"replicas": 2}}, headers=MERGE)
        await world.after(-1)
        await world.after(1)
        assert await world.replicas() == 2
        (history,) = await world.histories()
        assert len(objects_at(history, "successfulExecutions")) == 1


async def test_slow_server_keeps_the_executions_that_another_server_recorded_meanwhile() -> None:
    async with a_world() as world:
        await world.create({"targetReplicas": 4})
        objects = SlowReads(world.objects)
        slow = world.server(objects)
        number = await slow.turn(-1)
        objects.meanwhile.append(partial(world.after, 1))
        world.clock.ms += MINUTE_MS
        await slow.turn(number)
        (history,) = await world.histories()
        times = [execution["scheduleTime"] for execution in objects_at(history, "successfulExecutions")]
        assert times == ["2024-05-25T09:51:00Z", "2024-05-25T09:50:00Z"]


async def test_suspended_rule_scales_nothing() -> None:
    async with a_world() as world:
        await world.create({"targetReplicas": 4, "suspend": True})
        await world.after(2)
        assert await world.replicas() == 2
        rules = [{"name": "up", "schedule": "* * * * *", "targetReplicas": 4}]
        await world.client.patch(f"{SCALERS}/cron", json={"spec": {"rules": rules}}, headers=MERGE)
        await world.after(1)
        assert await world.replicas() == 4


@pytest.mark.parametrize("finalizers", [[], ["example.io/audit"]])
async def test_scaler_that_is_deleted_or_waits_for_its_deletion_scales_nothing(finalizers: list[str]) -> None:
    async with a_world() as world:
        await world.create({"targetReplicas": 4})
        body = {"metadata": {"finalizers": finalizers}}
        await world.client.patch(f"{SCALERS}/cron", json=body, headers=MERGE)
        await world.client.delete(f"{SCALERS}/cron")
        await world.after(1)
        assert await world.replicas() == 2


async def test_history_of_a_rule_is_bounded() -> None:
    async with a_world() as world:
        await world.create({"targetReplicas": 4, "successfulHistoryLimit": 2})
        for _ in range(4):
            await world.after(1)
        (history,) = await world.histories()
        times = [execution["scheduleTime"] for execution in objects_at(history, "successfulExecutions")]
        assert times == ["2024-05-25T09:53:00Z", "2024-05-25T09:52:00Z"]


async def test_removed_rule_has_no_history() -> None:
    async with a_world() as world:
        await world.create({"targetReplicas": 4})
        await world.after(1)
        rule = {"schedule": "* * * * *", "targetReplicas": 3}
        renamed, another = ({**rule, "name": name} for name in ("renamed", "another"))
        await world.patch({"rules": [renamed, another]})
        await world.after(2)
        assert {history["ruleName"] for history in await world.histories()} == {"renamed", "another"}
        await world.patch({"rules": [renamed, {**another, "suspend": True}]})
        await world.patch({"rules": [renamed]})
        assert [history["ruleName"] for history in await world.histories()] == ["renamed"]


async def test_each_rule_has_its_own_history_and_time_zone() -> None:
    async with a_world() as world:
        await world.create({"targetReplicas": 4})
        daily = {"schedule": "0 12 * * *", "targetReplicas": 3}
        noon, later = ({**daily, "name": zone, "timeZone": zone} for zone in ("Asia/Tokyo", "UTC"))
        minutely = {"name": "up", "schedule": "* * * * *", "targetReplicas": 4}
        await world.patch({"rules": [noon, minutely, later]})
        await world.after(1)
        histories = {history["ruleName"]: history for history in await world.histories()}
    assert {name: history["nextExecutionTime"] for name, history in histories.items()} == {
        "Asia/Tokyo": "2024-05-26T03:00:00Z",
        "up": "2024-05-25T09:51:00Z",
        "UTC": "2024-05-25T12:00:00Z",
    }
    assert [name for name, history in histories.items() if "successfulExecutions" in history] == ["up"]


@pytest.mark.parametrize("appends", [0, 1])
async def test_execution_is_repeated_after_a_failed_append(
    appends: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_world() as world:
        await world.create({"targetReplicas": 4})
        with monkeypatch.context() as patches:
            fail_after(appends, patches)
            with pytest.raises(LogError):
                await world.after(1)
        await world.after(0)
        assert await world.replicas() == 4
        (history,) = await world.histories()
        times = [execution["scheduleTime"] for execution in objects_at(history, "successfulExecutions")]
        assert times == ["2024-05-25T09:50:00Z"]


@pytest.mark.parametrize("is_stored", [False, True])
async def test_scaling_with_an_unknown_outcome_is_repeated(
    is_stored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, failed = MemoryLog.append, list[str]()

    async def unconfirmed(log: MemoryLog, batch: Sequence[Record]) -> list[StoredRecord]:
        if not failed and any("deployment" in appended.key for appended in batch):
            failed.append(batch[0].key)
            if is_stored:
                await append(log, batch)
            raise OutcomeUnknownError("the broker did not answer")
        return await append(log, batch)

    async with a_world() as world:
        await world.create({"targetReplicas": 4})
        monkeypatch.setattr(MemoryLog, "append", unconfirmed)
        with pytest.raises(OutcomeUnknownError):
            await world.after(1)
        assert failed
        await world.after(0)
        (history,) = await world.histories()
        assert await world.replicas() == 4
    assert "failedExecutions" not in history


def fail_after(appends: int, patches: pytest.MonkeyPatch) -> None:
    """Let the log in memory fail after so many more appends."""
    append, left = MemoryLog.append, [None] * appends

    async def failing(log: MemoryLog, batch: Sequence[Record]) -> list[StoredRecord]:
        if not left:
            raise LogError("the disk is full")
        left.pop()
        return await append(log, batch)

    patches.setattr(MemoryLog, "append", failing)


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {"rules": None},
        {"scaleTargetRef": None, "rules": []},
        {"rules": [{"name": "up", "schedule": "* sat-30 * * *"}]},
        {"rules": [{"name": "up", "schedule": "mon-999999999999 * * * *"}]},
        {"rules": [{"name": "up", "schedule": f"{'9' * 5_000} * * * *"}]},
    ],
)
async def test_unusable_scaler_of_a_producer_does_not_stop_the_others(spec: Json) -> None:
    async with a_world() as world:
        await world.write(spec, "unusable")
        await world.create({"targetReplicas": 4})
        await world.after(1)
        assert await world.replicas() == 4


@pytest.mark.parametrize(
    ("rule", "limits"),
    [({"targetMinReplicas": 3, "targetMaxReplicas": 3}, (3, 3)), ({"targetMaxReplicas": 5}, (1, 5))],
)
async def test_rule_sets_the_limits_of_a_federated_autoscaler(rule: Json, limits: tuple[int, int]) -> None:
    async with a_world() as world:
        spec: Json = {"scaleTargetRef": DEPLOYMENT, "minReplicas": 1, "maxReplicas": 2}
        body = manifest(GROUP, "FederatedHPA", "all", namespace="default", spec=spec)
        assert (await world.client.post(LIMITED, json=body)).status_code == 201
        target: Json = {"apiVersion": GROUP, "kind": "FederatedHPA", "name": "all"}
        await world.create(rule, target)
        await world.after(1)
        scaler = object_at(await world.get(f"{LIMITED}/all"), "spec")
        assert (scaler["minReplicas"], scaler["maxReplicas"]) == limits


async def test_limits_that_contradict_each_other_are_not_set() -> None:
    async with a_world() as world:
        spec: Json = {"scaleTargetRef": DEPLOYMENT, "minReplicas": 1, "maxReplicas": 3}
        body = manifest(GROUP, "FederatedHPA", "all", namespace="default", spec=spec)
        assert (await world.client.post(LIMITED, json=body)).status_code == 201
        wrong = await world.client.patch(f"{LIMITED}/all", json={"spec": {"maxReplicas": 0}}, headers=MERGE)
        assert (wrong.status_code, "federatedhpa.karmada.io" in wrong.json()["message"]) == (403, True)
        await world.create(
            {"targetMinReplicas": 5}, {"apiVersion": GROUP, "kind": "FederatedHPA", "name": "all"}
        )
        await world.after(1)
        (history,) = await world.histories()
        (failed,) = objects_at(history, "failedExecutions")
        assert "must be greater than or equal to `minReplicas`" in str(failed["message"])
        limits = object_at(await world.get(f"{LIMITED}/all"), "spec")
        assert (limits["minReplicas"], limits["maxReplicas"]) == (1, 3)


@pytest.mark.parametrize(
    ("target", "replicas", "reason"),
    [
        ({"name": "absent"}, 4, 'deployments.apps "absent" not found'),
        ({"apiVersion": "example.io/v1", "kind": "Web"}, 4, "there is no kind Web of example.io/v1"),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, 4, "objects of the kind ConfigMap have no scale"),
        ({}, None, "the rule has no targetReplicas"),
    ],
)
async def test_failure_to_scale_is_recorded(target: Json, replicas: int | None, reason: str) -> None:
    async with a_world() as world:
        rule: Json = {"name": "up", "schedule": "* * * * *", "targetReplicas": replicas}
        await world.write({"scaleTargetRef": {**DEPLOYMENT, **target}, "rules": [rule]}, "cron")
        await world.after(0)
        await world.after(1)
        (history,) = await world.histories()
        (failed,) = objects_at(history, "failedExecutions")
        assert (failed["message"], await world.replicas()) == (reason, 2)
