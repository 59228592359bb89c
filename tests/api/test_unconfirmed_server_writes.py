"""Writes of a server about itself, whose appends have unknown outcomes."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from engine.http.kube.members import endpoints
from engine.http.services import Services
from engine.log import port
from engine.process import shared_keys
from events.records import Record, StoredRecord
from tests.api.servers import kube_client, serving
from tests.builders.inputs import joined
from tests.builders.log_records import record

pytestmark = pytest.mark.virtual_time

CLUSTER = "/apis/cluster.karmada.io/v1alpha1/clusters/one"


def fail_every_second(patch: pytest.MonkeyPatch, services: Services, *, lands: bool) -> None:
    """Let the outcome of every second append be unknown, beginning with the first."""
    append, count = services.log.append, 0

    async def unconfirmed(batch: Sequence[Record]) -> Sequence[StoredRecord]:
        nonlocal count
        count += 1
        stored = await append(batch) if lands or count % 2 == 0 else []
        if count % 2:
            raise port.OutcomeUnknownError("the broker did not answer")
        return stored

    patch.setattr(services.log, "append", unconfirmed)
    patch.setattr(port, "AFTER_FAILURE_S", 0.0)


@pytest.mark.parametrize("lands", [True, False])
async def test_endpoints_of_members_are_registered(monkeypatch: pytest.MonkeyPatch, *, lands: bool) -> None:
    async with serving([record(joined("one"))]) as services, kube_client(services) as kube:
        fail_every_second(monkeypatch, services, lands=lands)
        await endpoints.connect(services, services.write_api, ["one"], "https://own", b"authority")
        spec = (await kube.get(CLUSTER)).json()["spec"]
        assert spec["apiEndpoint"].startswith("https://own/")
        for field in ("secretRef", "impersonatorSecretRef"):
            secret = "/api/v1/namespaces/{namespace}/secrets/{name}".format(**spec[field])
            assert (await kube.get(secret)).status_code == 200


@pytest.mark.parametrize("lands", [True, False])
async def test_replicas_share_their_keys(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, lands: bool
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    async with serving() as services, kube_client(services) as kube:
        await asyncio.to_thread(first.mkdir)
        await asyncio.to_thread(second.mkdir)
        fail_every_second(monkeypatch, services, lands=lands)
        await shared_keys.share(first, services.write_api, services.views)
        answering = asyncio.create_task(shared_keys.answer(services, services.write_api, first))
        await shared_keys.share(second, services.write_api, services.views, answer_seconds=60)
        services.stopping.set()
        await answering
        keys = [await asyncio.to_thread(shared_keys.load_or_create, path) for path in (first, second)]
        assert keys[0] == keys[1]
        maps = (
            await kube.get(f"/api/v1/namespaces/{shared_keys.rights_checks.KEYS_NAMESPACE}/configmaps")
        ).json()
        assert [value["metadata"]["name"] for value in maps["items"]] == [shared_keys.rights_checks.KEYS]
