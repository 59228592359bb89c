"""Deletions of namespaces that a stop interrupted continue at the next start, and touch no other namespace."""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import httpx
import pytest
import structlog

from engine.controllers import namespace_deletion
from engine.http.kube.app import KubeApplication, create_app
from engine.http.services import Services
from engine.log import port
from events import records
from tests.api.servers import NOW_MS, kube_client, serving
from tests.background import background
from tests.builders.manifests import config_map

pytestmark = pytest.mark.virtual_time

PROTECTED = "resourcetemplate.karmada.io/deletion-protected"
MERGE = {"content-type": "application/merge-patch+json"}
NAMESPACES = "/api/v1/namespaces"
SECONDS = 20


async def create(kube: httpx.AsyncClient, name: str, labels: dict[str, str]) -> None:
    metadata = {"name": name, "labels": labels}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    (await kube.post(NAMESPACES, json=namespace)).raise_for_status()
    content = config_map("content", name)
    (await kube.post(f"{NAMESPACES}/{name}/configmaps", json=content)).raise_for_status()


async def test_interrupted_deletion_continues_and_keeps_a_namespace_with_a_protected_object() -> None:
    async with serving() as services, kube_client(services) as kube:
        await create(kube, "labelled", {"deletionTimestamp": "never"})
        await create(kube, "leaving", {})
        (await kube.delete(f"{NAMESPACES}/leaving")).raise_for_status()
        assert (await kube.get(f"{NAMESPACES}/leaving/configmaps/content")).status_code == 200

        async with background(create_app(services, lambda: NOW_MS).run()):
            await wait_deleted(kube, "leaving")
        assert (await kube.get(f"{NAMESPACES}/labelled/configmaps/content")).status_code == 200


async def test_deletion_of_a_namespace_returns_the_terminating_namespace_also_as_a_dry_run() -> None:
    async with serving() as services, kube_client(services) as kube:
        await create(kube, "leaving", {})
        before = services.log.last_number()
        dry = (await kube.delete(f"{NAMESPACES}/leaving", params={"dryRun": "All"})).json()
        assert services.log.last_number() == before
        assert (dry["kind"], dry["metadata"]["name"]) == ("Namespace", "leaving")
        assert dry["metadata"]["deletionTimestamp"]
        assert "deletionGracePeriodSeconds" not in dry["metadata"]
        removed = (await kube.delete(f"{NAMESPACES}/leaving")).json()
        assert removed["status"] == {"phase": "Terminating"}
        assert removed == (await kube.get(f"{NAMESPACES}/leaving")).json()


def fail_once(
    monkeypatch: pytest.MonkeyPatch, services: Services, error: port.LogError, appends: int
) -> list[str]:
    """Let an append about the ConfigMap fail, after some that do not; return the failures."""
    append, seen, failed = services.log.append, itertools.count(), list[str]()

    async def failing(batch: list[records.Record]) -> Sequence[records.StoredRecord]:
        if any("content" in record.key for record in batch) and next(seen) == appends:
            failed.append(batch[0].key)
            raise error
        return await append(batch)

    monkeypatch.setattr(services.log, "append", failing)
    return failed


async def wait_deleted(kube: httpx.AsyncClient, name: str) -> None:
    """Wait until a namespace does not exist."""
    async with asyncio.timeout(SECONDS):
        while (await kube.get(f"{NAMESPACES}/{name}")).status_code != 404:  # noqa: ASYNC110  # the API is polled as clients do
            await asyncio.sleep(0.05)


@asynccontextmanager
async def leaving() -> AsyncGenerator[tuple[Services, KubeApplication, httpx.AsyncClient]]:
    """Serve a control plane with the namespace ``leaving``; each look at its clock takes a second."""
    ticks = itertools.count(NOW_MS, 1_000)
    async with serving() as services:
        application = create_app(services, lambda: next(ticks))
        async with kube_client(services, application) as kube:
            await create(kube, "leaving", {})
            yield services, application, kube


async def test_deletion_of_an_object_with_an_unknown_outcome_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with leaving() as (services, application, kube):
        failed = fail_once(monkeypatch, services, port.OutcomeUnknownError("the broker did not answer"), 0)
        (await kube.delete(f"{NAMESPACES}/leaving")).raise_for_status()
        async with background(application.run()):
            await wait_deleted(kube, "leaving")
    assert failed


async def test_namespace_is_deleted_in_members_although_the_outcome_of_its_removal_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ticks, cleared = itertools.count(NOW_MS, 1_000), list[str]()

    async def clear(name: str) -> None:
        cleared.append(name)

    async with serving() as services, kube_client(services) as kube:
        await create(kube, "leaving", {})
        (await kube.delete(f"{NAMESPACES}/leaving")).raise_for_status()
        append = services.log.append

        async def unconfirmed(batch: list[records.Record]) -> Sequence[records.StoredRecord]:
            stored = await append(batch)
            if any(record.key == "namespace:leaving" for record in batch):
                raise port.OutcomeUnknownError("the broker did not answer")
            return stored

        monkeypatch.setattr(services.log, "append", unconfirmed)
        namespaces = namespace_deletion.Namespaces(services.write_api, services, lambda: next(ticks), clear)
        async with background(namespaces.run(asyncio.Event())):
            await wait_deleted(kube, "leaving")
            await asyncio.sleep(1)
    assert cleared == ["leaving"]


async def test_deletion_continues_if_it_failed_when_a_protection_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with leaving() as (services, application, kube):
        content = f"{NAMESPACES}/leaving/configmaps/content"

        async def protect(value: str | None) -> httpx.Response:
            body = {"metadata": {"labels": {PROTECTED: value}}}
            return await kube.patch(content, json=body, headers=MERGE)

        assert (await protect("Always")).status_code == 200
        (await kube.delete(f"{NAMESPACES}/leaving")).raise_for_status()
        async with background(application.run()):
            await asyncio.sleep(1)
            assert (await kube.get(content)).status_code == 200
            failed = fail_once(monkeypatch, services, port.LogError("the log is away"), 1)
            assert (await protect(None)).status_code == 200
            await wait_deleted(kube, "leaving")
    assert failed


async def test_deletion_continues_if_a_protection_ends_at_another_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(namespace_deletion, "_SEARCH_S", 0.5)
    everything = structlog.make_filtering_bound_logger(0)  # the loggers of the tests drop messages
    logger = structlog.wrap_logger(None, wrapper_class=everything)
    monkeypatch.setattr(namespace_deletion, "_log", logger)
    async with leaving() as (services, application, kube), kube_client(services) as other:
        content = f"{NAMESPACES}/leaving/configmaps/content"
        protected, free = ({"metadata": {"labels": {PROTECTED: value}}} for value in ("Always", None))
        (await kube.patch(content, json=protected, headers=MERGE)).raise_for_status()
        (await kube.delete(f"{NAMESPACES}/leaving")).raise_for_status()
        with structlog.testing.capture_logs() as lines:
            async with background(application.run()):
                await asyncio.sleep(5)
        assert [(line["namespace"], line["first"]) for line in lines if "protected" in line["event"]] == [
            ("leaving", "ConfigMap content")
        ]
        assert (await kube.get(content)).status_code == 200
        async with background(application.run()):
            (await other.patch(content, json=free, headers=MERGE)).raise_for_status()
            await wait_deleted(kube, "leaving")


async def test_namespace_that_returns_within_the_grace_period_keeps_its_contents() -> None:
    async with serving() as services:
        application = create_app(services, lambda: NOW_MS)
        async with kube_client(services, application) as kube, background(application.run()):
            await create(kube, "again", {})
            content = f"{NAMESPACES}/again/configmaps/content"
            for finalizers in (["example.com/held"], []):
                body = {"metadata": {"finalizers": finalizers}}
                (await kube.patch(content, json=body, headers=MERGE)).raise_for_status()
                if finalizers:
                    (await kube.delete(f"{NAMESPACES}/again")).raise_for_status()
                    (await kube.delete(content)).raise_for_status()
            await wait_deleted(kube, "again")
            await create(kube, "again", {})
            await asyncio.sleep(namespace_deletion.GRACE_MS / 1000 + 0.5)
            assert (await kube.get(content)).status_code == 200


async def test_events_of_clients_are_deleted_with_their_namespace() -> None:
    async with serving() as services:
        application = create_app(services, lambda: NOW_MS)
        async with kube_client(services, application) as kube, background(application.run()):
            for name in ("leaving", "other"):
                await create(kube, name, {})
                event = {"metadata": {"name": "seen"}, "involvedObject": {"namespace": name}}
                (await kube.post(f"{NAMESPACES}/{name}/events", json=event)).raise_for_status()
            watch = {
                "watch": "1",
                "timeoutSeconds": "4",
                "resourceVersion": str(services.log.last_number()),
            }
            watching = asyncio.create_task(kube.get("/api/v1/events", params=watch))
            (await kube.delete(f"{NAMESPACES}/leaving")).raise_for_status()
            await wait_deleted(kube, "leaving")
            listed = (await kube.get("/api/v1/events")).json()["items"]
            assert [event["metadata"]["namespace"] for event in listed] == ["other"]
            lines = [json.loads(line) for line in (await watching).text.splitlines()]
    assert [(line["type"], line["object"]["metadata"]["namespace"]) for line in lines] == [
        ("DELETED", "leaving")
    ]


async def test_correction_of_the_clock_does_not_delay_a_deletion() -> None:
    now_ms = [NOW_MS]
    async with serving() as services:
        application = create_app(services, lambda: now_ms[0])
        async with kube_client(services, application) as kube, background(application.run()):
            await create(kube, "leaving", {})
            (await kube.delete(f"{NAMESPACES}/leaving")).raise_for_status()
            now_ms[0] -= 3_600_000
            await wait_deleted(kube, "leaving")
