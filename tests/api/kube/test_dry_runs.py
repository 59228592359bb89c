"""Dry runs respond with the object that the write would store, in the version of the request."""

from events import times
from events.json_values import Json
from tests.api.kube.client import MAPS, MERGE, api
from tests.api.servers import NOW_MS
from tests.builders.manifests import config_map, manifest

SCALERS = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
TARGET: Json = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}


async def test_dry_run_of_an_autoscaler_in_an_older_version_keeps_its_target() -> None:
    spec: Json = {"scaleTargetRef": TARGET, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50}
    scaler = manifest("autoscaling/v1", "HorizontalPodAutoscaler", "web", spec=spec)
    async with api() as (client, _):
        dry = await client.post(SCALERS, json=scaler, params={"dryRun": "All"})
        assert dry.json()["spec"] == {**spec, "minReplicas": 1}
        assert (await client.post(SCALERS, json=scaler)).status_code == 201
        status: Json = {"currentReplicas": 2, "desiredReplicas": 2, "currentCPUUtilizationPercentage": 7}
        written = await client.patch(f"{SCALERS}/web/status", json={"status": status}, headers=MERGE)
        assert written.json()["status"] == status, written.text
        patch: Json = {"spec": {"maxReplicas": 4}}
        dry = await client.patch(f"{SCALERS}/web?dryRun=All", json=patch, headers=MERGE)
        assert dry.json()["spec"] == {**spec, "minReplicas": 1, "maxReplicas": 4}
        assert dry.json()["status"] == status


async def test_dry_run_of_a_namespace_keeps_its_derived_fields() -> None:
    namespace, patch = "/api/v1/namespaces/one", {"metadata": {"labels": {"tier": "gold"}}}
    async with api() as (client, _):
        assert (
            await client.post("/api/v1/namespaces", json={"metadata": {"name": "one"}})
        ).status_code == 201
        dry = (await client.patch(f"{namespace}?dryRun=All", json=patch, headers=MERGE)).json()
        written = (await client.patch(namespace, json=patch, headers=MERGE)).json()
    for part in ("labels", "name", "uid"):
        assert dry["metadata"][part] == written["metadata"][part]
    assert (dry["spec"], dry["status"]) == (written["spec"], written["status"])


async def test_dry_run_of_an_exported_object_shows_a_new_uid_and_time() -> None:
    former: Json = {"name": "one", "uid": "former", "creationTimestamp": "2019-11-07T22:38:23Z"}
    exported = {**config_map("one"), "metadata": former}
    async with api() as (client, _):
        metadata = (await client.post(MAPS, params={"dryRun": "All"}, json=exported)).json()["metadata"]
    assert metadata["creationTimestamp"] == times.to_seconds_text(NOW_MS)
    assert metadata["uid"] not in {"", "former"}
