"""Certificate signing requests that are approved when they are made."""

import base64
from collections.abc import Sequence

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from engine.log.local import MemoryLog
from engine.log.port import LogError
from events.json_values import Json
from events.records import Record, StoredRecord
from tests.api.kube.client import api
from tests.builders.manifests import manifest

GROUP = "certificates.k8s.io/v1"
REQUESTS = f"/apis/{GROUP}/certificatesigningrequests"
RBAC = "rbac.authorization.k8s.io/v1"
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


@pytest.mark.parametrize(("may_sign", "code"), [(False, 403), (True, 200)])
async def test_condition_of_a_signer_needs_the_right_to_sign(may_sign: bool, code: int) -> None:
    status_rule: Json = {
        "apiGroups": ["certificates.k8s.io"],
        "resources": ["certificatesigningrequests/status"],
        "verbs": ["patch"],
    }
    signing_rule: Json = {"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "verbs": ["sign"]}
    rules = [status_rule, *([signing_rule] if may_sign else [])]
    role_ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "mine"}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]
    async with api() as (client, _):
        for kind, value in (
            ("clusterroles", manifest(RBAC, "ClusterRole", "mine", rules=rules)),
            (
                "clusterrolebindings",
                manifest(RBAC, "ClusterRoleBinding", "mine", roleRef=role_ref, subjects=subjects),
            ),
        ):
            made = await client.post(f"/apis/{RBAC}/{kind}", json=value)
            assert made.status_code == 201, made.text
        assert (await client.post(REQUESTS, json=request("joe", "team"))).status_code == 201
        failed = {"type": "Failed", "status": "True", "reason": "Mine"}
        headers = {"impersonate-user": "alice", "content-type": "application/merge-patch+json"}
        patch = {"status": {"conditions": [failed]}}
        answer = await client.patch(f"{REQUESTS}/one/status", json=patch, headers=headers)
        assert answer.status_code == code, answer.text
