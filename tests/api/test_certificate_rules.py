"""Certificate signing requests: who may approve and sign them, and which certificates they get."""

import base64
import datetime as dt
from typing import Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from engine.kubeapi.errors.status_objects import StatusError
from engine.kubeapi.rights import rbac
from engine.kubeapi.schema import resources
from engine.writing.edits.certificate_requests import Admission
from engine.writing.edits.rights_checks import Permission
from events.json_values import Json
from events.kube_objects import KubeObject
from tests.api.servers import NOW_MS
from tests.builders.manifests import manifest

GROUP: Final = "certificates.k8s.io"
REQUESTS: Final = "certificatesigningrequests"
RESOURCE: Final = resources.control_plane().resource(GROUP, "v1", REQUESTS)
SIGNER: Final = "kubernetes.io/kube-apiserver-client"
AGENTS: Final = ("system:karmada:agents",)
AGENT: Final = "system:karmada:agent:one"
KEY: Final = ec.generate_private_key(ec.SECP256R1())


def pem(name: str = AGENT, groups: tuple[str, ...] = AGENTS, *, other_name: str = "") -> str:
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    if other_name:
        names = x509.SubjectAlternativeName([x509.DNSName(other_name)])
        builder = builder.add_extension(names, critical=False)
    signed = builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    return base64.b64encode(signed).decode()


def request(encoded: str = "", usages: tuple[str, ...] = ("client auth",), **spec: object) -> KubeObject:
    fields: Json = {"request": encoded or pem(), "signerName": SIGNER, "usages": list(usages), **spec}
    return KubeObject(manifest(f"{GROUP}/v1", "CertificateSigningRequest", "one", spec=fields))


def admit(
    value: KubeObject, before: KubeObject | None, part: str = "", *rules: rbac.Rule, user: str = "alice"
) -> KubeObject:
    """Return the request as it is stored by a user with these rights; certificates are the text of the validity."""
    role = rbac.Role(name="own", rules=rules)
    subjects = (rbac.Subject(kind="User", name=user),)
    bound = rbac.Binding(name="own", role="own", of_cluster=True, subjects=subjects)
    permission = Permission(
        user=rbac.User(name=user, uid="7", groups=("team",)),
        rights=rbac.Rights([role], [bound]),
        creates=before is None,
    )

    def sign(_request: bytes, _now: dt.datetime, valid_for: dt.timedelta) -> bytes:
        return str(valid_for).encode()

    assert RESOURCE is not None
    admission = Admission(resource=RESOURCE, part=part, permission=permission, now_ms=NOW_MS, sign=sign)
    return admission(value, before)


def rule(verb: str, resource: str, *names: str) -> rbac.Rule:
    return rbac.Rule(verbs=(verb,), groups=(GROUP,), resources=(resource,), names=names)


def conditions(value: KubeObject) -> list[object]:
    return [condition["type"] for condition in value.objects_at("status", "conditions")]


def certificate(value: KubeObject) -> str:
    return base64.b64decode(value.text_at("status", "certificate")).decode()


def decided(value: KubeObject, *kinds: str, status: str = "True") -> KubeObject:
    listed = [{"type": kind, "status": status} for kind in kinds]
    return value.with_fields({"status": {**value.object_at("status"), "conditions": listed}})


JOIN: Final = rule("create", f"{REQUESTS}/clusteragent")
RENEW: Final = rule("create", f"{REQUESTS}/selfclusteragent")
APPROVE: Final = rule("approve", "signers", SIGNER)


@pytest.mark.parametrize("user", ["alice", AGENT])
@pytest.mark.parametrize("granted", [None, JOIN, RENEW])
def test_agents_request_is_approved_with_the_right_to_join_or_to_renew(
    granted: rbac.Rule | None, user: str
) -> None:
    made = admit(request(), None, "", *((granted,) if granted else ()), user=user)
    is_approved = granted is JOIN or (granted is RENEW and user == AGENT)
    assert conditions(made) == (["Approved"] if is_approved else [])
    assert certificate(made) == ("365 days, 0:00:00" if is_approved else "")


@pytest.mark.parametrize(
    "other",
    [
        request(pem(name="alice")),
        request(pem(groups=("system:karmada:agents", "team"))),
        request(pem(groups=("team",))),
        request(pem(other_name="example.com")),
        request(usages=("client auth", "server auth")),
        request(signerName="example.com/own"),
    ],
)
def test_other_request_waits_for_an_approval(other: KubeObject) -> None:
    assert conditions(admit(other, None, "", JOIN, RENEW)) == []


def test_requester_is_the_user_and_never_changes() -> None:
    named: Json = {"username": "root", "groups": [rbac.MASTERS], "extra": {"a": ["b"]}}
    made = admit(request().with_fields({"spec": {**request().object_at("spec"), **named}}), None)
    expected = {**request().object_at("spec"), "username": "alice", "uid": "7", "groups": ["team"]}
    assert made.object_at("spec") == {**expected, "request": made.at("spec", "request")}
    changed = made.with_fields({"spec": {**made.object_at("spec"), **named}})
    assert admit(changed, made, user="bob").object_at("spec") == made.object_at("spec")


@pytest.mark.parametrize(
    ("granted", "is_approved"),
    [
        (APPROVE, True),
        (rule("approve", "signers", "kubernetes.io/*"), True),
        (rule("approve", "signers", "example.com/*"), False),
        (rule("sign", "signers", SIGNER), False),
    ],
)
def test_approval_needs_the_right_for_the_signer(granted: rbac.Rule, *, is_approved: bool) -> None:
    made = admit(request(), None)
    if is_approved:
        approved = admit(decided(made, "Approved"), made, "approval", granted)
        assert (conditions(approved), certificate(approved)) == (["Approved"], "365 days, 0:00:00")
        return
    with pytest.raises(StatusError) as refused:
        admit(decided(made, "Approved"), made, "approval", granted)
    assert refused.value.code == 403


def test_decision_is_final_and_unambiguous() -> None:
    made = admit(request(), None)
    denied = admit(decided(made, "Denied"), made, "approval", APPROVE)
    assert (conditions(denied), certificate(denied)) == (["Denied"], "")
    for before, after in (
        (made, decided(made, "Approved", "Denied")),
        (made, decided(made, "Approved", status="False")),
        (denied, decided(denied)),
        (denied, decided(denied, "Approved")),
    ):
        with pytest.raises(StatusError) as refused:
            admit(after, before, "approval", APPROVE)
        assert refused.value.code == 422


@pytest.mark.parametrize(
    ("seconds", "valid_for"), [(600, "0:10:00"), (86_400, "1 day, 0:00:00"), (10**9, "365 days, 0:00:00")]
)
def test_certificate_is_valid_as_long_as_requested_up_to_a_year(seconds: int, valid_for: str) -> None:
    assert certificate(admit(request(expirationSeconds=seconds), None, "", JOIN)) == valid_for


def test_request_for_less_than_ten_minutes_is_refused() -> None:
    with pytest.raises(StatusError, match="may not specify a duration less than 600 seconds"):
        admit(request(expirationSeconds=599), None)


@pytest.mark.parametrize("usages", [("digital signature",), ("client auth", "server auth")])
def test_approved_request_for_other_usages_fails(usages: tuple[str, ...]) -> None:
    made = admit(request(usages=usages), None)
    failed = admit(decided(made, "Approved"), made, "approval", APPROVE)
    assert (conditions(failed), certificate(failed)) == (["Approved", "Failed"], "")


def test_status_changes_neither_decisions_nor_the_certificate_without_the_right_to_sign() -> None:
    made = admit(request(signerName="example.com/own"), None)
    assert conditions(admit(decided(made, "Approved"), made, "status")) == []
    signed = made.with_fields({"status": {"certificate": "abc"}})
    with pytest.raises(StatusError) as refused:
        admit(signed, made, "status")
    assert refused.value.code == 403
    signing = rule("sign", "signers", "example.com/own")
    assert admit(signed, made, "status", signing).at("status", "certificate") == "abc"


def test_status_and_decision_keep_each_others_conditions() -> None:
    own = "example.com/own"
    may_approve, may_sign = (rule(verb, "signers", own) for verb in ("approve", "sign"))
    made = admit(request(signerName=own), None)
    failed = admit(decided(made, "Failed"), made, "status", may_sign)
    approved = admit(decided(failed, "Approved"), failed, "approval", may_approve)
    assert (conditions(approved), certificate(approved)) == (["Approved", "Failed"], "")
    # A status without the approval does not withdraw it, and no other server's request is signed.
    assert conditions(admit(decided(approved), approved, "status", may_sign)) == ["Approved"]
    accepted = admit(decided(made, "Approved"), made, "approval", may_approve)
    assert (conditions(accepted), certificate(accepted)) == (["Approved"], "")


def test_no_certificate_of_masters_can_be_requested() -> None:
    masters = pem(groups=(rbac.MASTERS,))
    with pytest.raises(StatusError) as refused:
        admit(request(masters), None)
    assert refused.value.code == 403
    assert conditions(admit(request(masters, signerName="example.com/own"), None)) == []


@pytest.mark.parametrize("invalid", [{"usages": []}, {"signerName": ""}, {"signerName": "own"}])
def test_request_without_usages_or_signer_is_refused(invalid: Json) -> None:
    value = request()
    with pytest.raises(StatusError) as refused:
        admit(value.with_fields({"spec": {**value.object_at("spec"), **invalid}}), None)
    assert refused.value.code == 422
