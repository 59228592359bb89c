"""CertificateSigningRequests with kubectl: by bootstrap tokens, as ``karmadactl register`` makes them, and by users."""

import base64
import json
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from events.json_values import Json, at, object_at
from tests.kubectl.commands import Kubectl
from tests.kubectl.joining import SECRET, joining, token_secret

KEY = ec.generate_private_key(ec.SECP256R1())
AGENTS = "system:karmada:agents"
APPROVED = "Approved,Issued"


def request_for(name: str, user: str, group: str, **spec: object) -> str:
    """A request for a client certificate, as kubectl creates it."""
    subject = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, group),
        x509.NameAttribute(NameOID.COMMON_NAME, user),
    ]
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    pem = builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    value: Json = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {
            "request": base64.b64encode(pem).decode(),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth", "digital signature", "key encipherment"],
            **spec,
        },
    }
    return json.dumps(value)


def credentials(kubectl: Kubectl, name: str) -> Json:
    """The certificate that was issued for a request, with its key."""
    key = KEY.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return {
        "client-certificate-data": at(kubectl.json("csr", name), "status", "certificate"),
        "client-key-data": base64.b64encode(key).decode(),
    }


def decision(kubectl: Kubectl, name: str) -> str:
    return kubectl("get", "csr", name, "--no-headers").split()[-1]


def user_of(kubectl: Kubectl) -> Json:
    return object_at(json.loads(kubectl("auth", "whoami", "-o", "json")), "status", "userInfo")


def test_bootstrap_token_leads_to_the_right_to_write_roles_of_agents_and_no_others(
    kubectl: Kubectl, home_directory: Path, tmp_path: Path
) -> None:
    kubectl("apply", "-n", "kube-system", "-f", "-", stdin=token_secret("csr000"))
    holder = joining(kubectl, tmp_path, home_directory, {"token": f"csr000.{SECRET}"})
    user = "system:karmada:agent:rbac-generator"
    holder("create", "-f", "-", "--validate=false", stdin=request_for("roles", user, AGENTS))
    registrar = joining(kubectl, tmp_path, home_directory, credentials(holder, "roles"))
    works = ("--verb=get,list,watch", "--resource=works.work.karmada.io")
    registrar("create", "namespace", "karmada-es-edge")
    registrar("create", "role", "edge", "-n", "karmada-es-edge", *works)
    registrar("create", "clusterrole", "edge", "--verb=get,delete", "--resource=clusters.cluster.karmada.io")
    registrar("create", "clusterrole", "more", "--verb=get", "--resource=secrets", code=1)
    assert f'user "{user}"' in registrar.errors
    assert "attempting to grant RBAC permissions not currently held" in registrar.errors
    registrar("create", "clusterrolebinding", "all", "--clusterrole=cluster-admin", f"--user={user}", code=1)
    registrar("get", "secrets", "-A", code=1)
    registrar("delete", "csr", "roles")


def test_bootstrap_token_gets_the_certificate_of_an_agent_which_renews_it(
    kubectl: Kubectl, home_directory: Path, tmp_path: Path
) -> None:
    kubectl("apply", "-n", "kube-system", "-f", "-", stdin=token_secret("csr001"))
    holder = joining(kubectl, tmp_path, home_directory, {"token": f"csr001.{SECRET}"})
    user = "system:karmada:agent:edge"
    holder("create", "-f", "-", "--validate=false", stdin=request_for("edge", user, AGENTS))
    assert decision(kubectl, "edge") == APPROVED
    assert at(kubectl.json("csr", "edge"), "spec", "username") == "system:bootstrap:csr001"

    agent = joining(kubectl, tmp_path, home_directory, credentials(holder, "edge"))
    assert user_of(agent) == {"username": user, "groups": [AGENTS, "system:authenticated"]}
    assert "cluster.cluster.karmada.io/member1" in agent("get", "clusters", "-o", "name")
    agent("get", "secrets", code=1)
    assert f'User "{user}" cannot list resource "secrets"' in agent.errors
    kubectl("create", "clusterrole", "requests", "--verb=create", "--resource=certificatesigningrequests")
    kubectl("create", "clusterrolebinding", "requests", "--clusterrole=requests", f"--group={AGENTS}")
    agent("create", "-f", "-", "--validate=false", stdin=request_for("edge-2", user, AGENTS))
    assert decision(kubectl, "edge-2") == APPROVED
    other = request_for("edge-3", "system:karmada:agent:other", AGENTS)
    agent("create", "-f", "-", "--validate=false", stdin=other)
    assert decision(kubectl, "edge-3") == "Pending"
    kubectl("delete", "clusterrole,clusterrolebinding", "requests")


def test_other_certificate_of_a_bootstrap_token_waits_for_approval(
    kubectl: Kubectl, home_directory: Path, tmp_path: Path
) -> None:
    kubectl("apply", "-n", "kube-system", "-f", "-", stdin=token_secret("csr002"))
    holder = joining(kubectl, tmp_path, home_directory, {"token": f"csr002.{SECRET}"})
    identity = {"username": "reballast-admin", "groups": ["system:masters"]}
    for name, user, group in (
        ("developer", "joe", "developers"),
        ("no-agent", "joe", AGENTS),
        ("no-group", "system:karmada:agent:joe", "developers"),
    ):
        holder("create", "-f", "-", "--validate=false", stdin=request_for(name, user, group, **identity))
        assert decision(kubectl, name) == "Pending"
    requester = object_at(kubectl.json("csr", "developer"), "spec")
    assert requester["username"] == "system:bootstrap:csr002"
    assert "system:masters" not in str(requester["groups"])
    master = request_for("master", "joe", "system:masters")
    kubectl("create", "-f", "-", stdin=master, code=1)
    assert "signer with system:masters group is not allowed" in kubectl.errors

    kubectl("patch", "csr", "developer", "--type=merge", "-p", '{"spec":{"username":"reballast-admin"}}')
    assert object_at(kubectl.json("csr", "developer"), "spec") == requester
    kubectl("certificate", "approve", "developer")
    assert decision(kubectl, "developer") == APPROVED
    developer = joining(kubectl, tmp_path, home_directory, credentials(kubectl, "developer"))
    assert user_of(developer) == {"username": "joe", "groups": ["developers", "system:authenticated"]}
    kubectl("certificate", "deny", "no-agent")
    assert decision(kubectl, "no-agent") == "Denied"


def test_approval_needs_the_right_for_the_signer_and_a_request_that_it_signs(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=request_for("jane", "jane", "developers"))
    kubectl("create", "-f", "-", stdin=request_for("server", "jane", "developers", usages=["server auth"]))
    kubectl(
        "create",
        "-f",
        "-",
        stdin=request_for("elsewhere", "jane", "developers", signerName="example.com/signer"),
    )
    kubectl("create", "serviceaccount", "approver")
    parts = "certificatesigningrequests,certificatesigningrequests/approval"
    kubectl("create", "clusterrole", "approver", "--verb=get,update", f"--resource={parts}")
    account = f"--serviceaccount={kubectl.namespace}:approver"
    kubectl("create", "clusterrolebinding", "approver", "--clusterrole=approver", account)
    approver = f"--token={kubectl('create', 'token', 'approver').strip()}"
    kubectl("certificate", "approve", "jane", approver, code=1)
    assert "user not permitted to approve requests with signerName" in kubectl.errors
    assert decision(kubectl, "jane") == "Pending"
    signer: Json = {
        "apiGroups": ["certificates.k8s.io"],
        "resources": ["signers"],
        "resourceNames": ["kubernetes.io/kube-apiserver-client"],
        "verbs": ["approve"],
    }
    added = json.dumps([{"op": "add", "path": "/rules/-", "value": signer}])
    kubectl("patch", "clusterrole", "approver", "--type=json", "-p", added)
    kubectl("certificate", "approve", "jane", approver)
    assert decision(kubectl, "jane") == APPROVED
    kubectl("certificate", "approve", "server", "elsewhere")
    assert decision(kubectl, "server") == "Approved,Failed"
    assert decision(kubectl, "elsewhere") == "Approved"
    kubectl("create", "-f", "-", stdin=request_for("broken", "a", "b", request="YWJj"), code=1)
    assert "spec.request: Invalid value" in kubectl.errors
    kubectl("delete", "clusterrole,clusterrolebinding", "approver")
