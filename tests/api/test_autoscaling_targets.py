"""Labels of the targets of propagated autoscalers, after failed writes of the controller."""

from collections.abc import Sequence

import pytest

from engine.controllers.autoscaling import Autoscaling
from engine.controllers.controller import Access
from engine.domain import marks
from engine.http.kube.app import create_app
from engine.log.local import MemoryLog
from engine.log.port import LogError
from events.json_values import Json, object_at
from events.records import Record, StoredRecord
from tests.api.servers import NOW_MS, kube_client, serving
from tests.api.story_records import written
from tests.builders.inputs import applied, deployment, joined, policy
from tests.builders.manifests import manifest, on, selector
from tests.deciders.story import Story

SCALER = ("autoscaling/v2", "HorizontalPodAutoscaler")
WEB = "/apis/apps/v1/namespaces/default/deployments/web"


async def test_target_is_labelled_after_a_failed_append(monkeypatch: pytest.MonkeyPatch) -> None:
    append, failed = MemoryLog.append, list[str]()

    async def failing(log: MemoryLog, batch: Sequence[Record]) -> list[StoredRecord]:
        if not failed:
            failed.append(batch[0].key)
            raise LogError("the disk is full")
        return await append(log, batch)

    target: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    scaler = manifest(*SCALER, "web", "default", spec={"scaleTargetRef": target, "maxReplicas": 3})
    story = Story()
    await story.submit(joined("member1"), deployment("web"), applied(scaler))
    await story.submit(policy("p", on("member1"), selector("web", SCALER)))
    async with serving(await written(story)) as services, kube_client(services) as client:
        plane = create_app(services, lambda: NOW_MS).plane
        controller = Autoscaling(Access(services, plane, services.write_api, lambda: NOW_MS))
        await services.catch_up()
        monkeypatch.setattr(MemoryLog, "append", failing)
        with pytest.raises(LogError):
            await controller.turn(-1)
        # As ``run`` does after a failure, begin with all objects again.
        await controller.turn(-1)
        labels = object_at((await client.get(WEB)).json(), "metadata", "labels")
    assert failed
    assert labels.get(marks.RETAIN_REPLICAS) == "true"
