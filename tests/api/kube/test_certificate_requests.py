"""Certificate signing requests that are approved when they are made."""

import base64
from collections.abc import Sequence

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from engine.log.memory import MemoryLog
from engine.log.port import LogError
from events.json_values import Json
from events.records import Record, StoredRecord
from tests.api.kube.client import api
from tests.builders.manifests import manifest

GROUP = "certificates.k8s.io/v1"
REQUESTS = f"/apis/{GROUP}/certificatesigningrequests"
APPROVED: Json = {"type": "Approved", "status": "True", "reason": "Mine"}


def request(user: str, group: str, status: Json | None = None) -> Json:
    subject = x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group), x509.NameAttribute(NameOID.COMMON_NAME, user)]
    )
    key = ec.generate_private_key(ec.SECP256R1())
    signed = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    spec = {
        "request": base64.b64encode(signed.public_bytes(serialization.Encoding.PEM)).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
    }
    return manifest(GROUP, "CertificateSigningRequest", "one", spec=spec, status=status or {})


async def test_agents_request_is_written_together_with_its_approval(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that stops, or a log that fails, between the two would leave a request that is never approved."""
    append, batches = MemoryLog.append, list[int]()

    async def append_once(log: MemoryLog, batch: Sequence[Record]) -> list[StoredRecord]:
        batches.append(len(batch))
        if len(batches) > 1:
            raise LogError("the log has failed")
        return await append(log, batch)

    async with api() as (client, _):
        monkeypatch.setattr(MemoryLog, "append", append_once)
        body = request("system:karmada:agent:one", "system:karmada:agents")
        tried = await client.post(REQUESTS, params={"dryRun": "All"}, json=body)
        assert (tried.status_code, tried.json()["status"]) == (201, {})
        assert (await client.post(REQUESTS, json=body)).status_code == 201
        (condition,) = (await client.get(f"{REQUESTS}/one")).json()["status"]["conditions"]
        assert (condition["type"], condition["reason"]) == ("Approved", "AutoApproved")
    assert batches == [2]


async def test_new_request_cannot_approve_itself() -> None:
    async with api() as (client, _):
        body = request("joe", "team", {"conditions": [APPROVED]})
        assert (await client.post(REQUESTS, json=body)).status_code == 201
        assert not (await client.get(f"{REQUESTS}/one")).json().get("status", {})
