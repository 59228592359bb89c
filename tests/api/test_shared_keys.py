"""Replicas on one log share their keys, and the log does not reveal them to others."""

import asyncio
import json
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from engine.http.services import Services
from engine.identity import sealing
from engine.process import shared_keys
from engine.writing.edits import rights_checks
from tests import speed
from tests.api.servers import kube_client, serving

pytestmark = pytest.mark.virtual_time

MAPS = f"/api/v1/namespaces/{rights_checks.KEYS_NAMESPACE}/configmaps"


async def share(services: Services, directory: Path, *, seconds: float = 60.0) -> shared_keys.Keys:
    await asyncio.to_thread(directory.mkdir, exist_ok=True)
    await shared_keys.share(directory, services.write_api, services.views, answer_seconds=seconds)
    return await asyncio.to_thread(shared_keys.load_or_create, directory)


async def test_new_replica_receives_the_existing_keys(tmp_path: Path) -> None:
    async with serving() as services:
        first = await share(services, tmp_path / "first")
        answering = asyncio.create_task(shared_keys.answer(services, services.write_api, tmp_path / "first"))
        second, third = await asyncio.gather(
            share(services, tmp_path / "second"), share(services, tmp_path / "third")
        )
        assert first == second == third
        # A replica that already has keys starts without a request.
        services.stopping.set()
        await answering
        assert await share(services, tmp_path / "second", seconds=0.0) == first

        listed = await services.log.read_all(0, 10_000)
        written = b"".join(record.value for record in listed)
        assert first.certificate.encode().replace(b"\n", b"\\n") in written
        for secret in (first.key, first.token):
            assert secret.strip().encode().replace(b"\n", b"\\n") not in written
        assert rights_checks.KEY_REQUEST_PREFIX.encode() in written


async def test_replicas_that_start_together_agree_on_keys(tmp_path: Path) -> None:
    async with serving() as services:

        async def started(name: str) -> shared_keys.Keys:
            keys = await share(services, tmp_path / name)
            answering.append(
                asyncio.create_task(shared_keys.answer(services, services.write_api, tmp_path / name))
            )
            return keys

        answering: list[asyncio.Task[None]] = []
        all_keys = await asyncio.gather(*(started(f"replica{index}") for index in range(4)))
        assert len({keys.fingerprint for keys in all_keys}) == 1
        services.stopping.set()
        await asyncio.gather(*answering)


async def test_new_keys_replace_lost_keys_if_no_replica_answers(tmp_path: Path) -> None:
    async with serving() as services:
        lost = await share(services, tmp_path / "lost")
        fresh = await share(services, tmp_path / "fresh", seconds=0.0)
        assert fresh != lost
        answering = asyncio.create_task(shared_keys.answer(services, services.write_api, tmp_path / "fresh"))
        assert await share(services, tmp_path / "lost") == fresh
        services.stopping.set()
        await answering


@pytest.mark.slow
async def test_new_replica_waits_three_seconds_for_lost_keys(tmp_path: Path) -> None:
    async with serving() as services:
        lost = await share(services, tmp_path / "lost")
        await asyncio.to_thread((tmp_path / "fresh").mkdir)
        began_s = time.monotonic()
        await shared_keys.share(tmp_path / "fresh", services.write_api, services.views)
        assert 3.0 <= time.monotonic() - began_s < 5.0 * speed.slowness()
        assert await asyncio.to_thread(shared_keys.load_or_create, tmp_path / "fresh") != lost


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"reader": "?"},
        {"reader": "c2hvcnQ="},
        {"reader": ""},
        {"reader": f"{43 * 'A'}="},
    ],
)
async def test_malformed_key_requests_are_ignored(tmp_path: Path, data: dict[str, str]) -> None:
    async with serving() as services:
        first = await share(services, tmp_path / "first")
        async with kube_client(services) as client:
            wrong = {
                "metadata": {"name": f"{rights_checks.KEY_REQUEST_PREFIX}0"},
                "data": {"for": first.fingerprint, **data},
            }
            assert (await client.post(MAPS, json=wrong)).status_code == 201
        answering = asyncio.create_task(shared_keys.answer(services, services.write_api, tmp_path / "first"))
        assert await share(services, tmp_path / "second") == first
        services.stopping.set()
        await answering


async def test_only_administrators_can_request_keys() -> None:
    async with serving() as services, kube_client(services) as client:
        rule = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        group = "/apis/rbac.authorization.k8s.io/v1"
        role = {"metadata": {"name": "all"}, "rules": [rule]}
        binding = {
            "metadata": {"name": "all"},
            "subjects": [{"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"kind": "ClusterRole", "name": "all", "apiGroup": "rbac.authorization.k8s.io"},
        }
        assert (await client.post(f"{group}/clusterroles", json=role)).status_code == 201
        assert (await client.post(f"{group}/clusterrolebindings", json=binding)).status_code == 201
        alice = {"impersonate-user": "alice"}
        other = {"metadata": {"name": "others"}}
        assert (await client.post(MAPS, json=other, headers=alice)).status_code == 201
        named = {"metadata": {"name": f"{rights_checks.KEY_REQUEST_PREFIX}0"}}
        refused = await client.post(MAPS, json=named, headers=alice)
        assert refused.status_code == 403
        assert "system:masters" in refused.json()["message"]
        assert (await client.post(MAPS, json=named)).status_code == 201
        path = f"{MAPS}/{rights_checks.KEY_REQUEST_PREFIX}0"
        patched = await client.patch(
            path,
            content=json.dumps({"data": {"a": "b"}}),
            headers={**alice, "content-type": "application/merge-patch+json"},
        )
        assert patched.status_code == 403
        assert (await client.delete(path, headers=alice)).status_code == 403
        assert (await client.delete(path)).status_code == 200


def test_sealed_text_opens_with_its_reader_key_and_label_only() -> None:
    reader, other = X25519PrivateKey.generate(), X25519PrivateKey.generate()
    sealed = sealing.sealed(b"a secret", reader.public_key().public_bytes_raw(), b"label")
    assert sealing.opened(sealed, reader, b"label") == b"a secret"
    assert b"a secret" not in sealed
    changed = bytearray(sealed)
    changed[-1] ^= 1
    for text, key, label in (
        (sealed, other, b"label"),
        (sealed, reader, b"another"),
        (bytes(changed), reader, b"label"),
        (sealed[:40], reader, b"label"),
        (b"", reader, b"label"),
    ):
        with pytest.raises(sealing.SealError):
            sealing.opened(text, key, label)
    with pytest.raises(sealing.SealError):
        sealing.sealed(b"", b"short", b"label")
