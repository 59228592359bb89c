"""Bootstrap tokens with kubectl: what ``karmadactl register`` reads and verifies first."""

import base64
import hashlib
import hmac
import json
import ssl
from pathlib import Path

import httpx
import pytest

from events.json_values import at, list_at, object_at, objects_at
from tests.kubectl.commands import Kubectl
from tests.kubectl.joining import GROUP, SECRET, joining, published, token_secret

INFO = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
ID = "abc123"


def test_client_without_credentials_reads_the_signed_cluster_info_only(kubectl: Kubectl) -> None:
    kubectl("apply", "-n", "kube-system", "-f", "-", stdin=token_secret(ID))
    (cluster,) = (object_at(entry, "cluster") for entry in objects_at(published(kubectl), "clusters"))
    authority = base64.b64decode(str(cluster["certificate-authority-data"])).decode()
    trusted = ssl.create_default_context(cadata=authority)
    with httpx.Client(base_url=str(cluster["server"]), verify=trusted) as anonymous:
        data = anonymous.get(INFO).json()["data"]
        head, detached, signature = data[f"jws-kubeconfig-{ID}"].split(".")
        assert json.loads(_bytes(head)) == {"alg": "HS256", "kid": ID}
        assert not detached
        payload = base64.urlsafe_b64encode(data["kubeconfig"].encode()).rstrip(b"=").decode()
        expected = hmac.new(SECRET.encode(), f"{head}.{payload}".encode(), hashlib.sha256).digest()
        assert _bytes(signature) == expected
        assert anonymous.get(INFO.rpartition("/")[0]).status_code == 401
        refused = anonymous.delete(INFO)
        assert refused.status_code == 403
        assert 'User "system:anonymous" cannot delete resource "configmaps"' in refused.json()["message"]
        kubectl("delete", "secret", "-n", "kube-system", f"bootstrap-token-{ID}")
        assert f"jws-kubeconfig-{ID}" not in anonymous.get(INFO).json()["data"]


def test_bootstrap_token_authenticates_its_holder_until_it_is_deleted(
    kubectl: Kubectl, home_directory: Path, tmp_path: Path
) -> None:
    later = "2999-01-01T00:00:00Z"
    kubectl("apply", "-n", "kube-system", "-f", "-", stdin=token_secret("abc124", expiration=later))
    holder = joining(kubectl, tmp_path, home_directory, {"token": f"abc124.{SECRET}"})
    user = object_at(json.loads(holder("auth", "whoami", "-o", "json")), "status", "userInfo")
    assert user["username"] == "system:bootstrap:abc124"
    assert list_at(user, "groups") == ["system:bootstrappers", GROUP, "system:authenticated"]
    holder("get", "secrets", code=1)
    assert 'User "system:bootstrap:abc124" cannot list resource "secrets"' in holder.errors
    kubectl("delete", "secret", "-n", "kube-system", "bootstrap-token-abc124")
    holder("auth", "whoami", code=1)
    assert "Unauthorized" in holder.errors


@pytest.mark.parametrize(
    "wrong",
    [
        {"expiration": "2020-01-01T00:00:00Z"},
        {"expiration": "tomorrow"},
        {"usage_bootstrap_authentication": "false"},
        {"token_secret": "another-secret-0"},
        {"token_secret": "fedcba9876543210"},
        {"token_id": "abc126"},
        {"auth_extra_groups": "system:masters"},
    ],
    ids=lambda wrong: " ".join(f"{key}={value}" for key, value in wrong.items()),
)
def test_invalid_bootstrap_token_is_refused(
    kubectl: Kubectl, home_directory: Path, tmp_path: Path, wrong: dict[str, str]
) -> None:
    kubectl("apply", "-n", "kube-system", "-f", "-", stdin=token_secret("abc125", **wrong))
    holder = joining(kubectl, tmp_path, home_directory, {"token": f"abc125.{SECRET}"})
    holder("auth", "whoami", code=1)
    assert "Unauthorized" in holder.errors
    is_signing = (
        not {"expiration", "token_id"} & set(wrong) and wrong.get("token_secret") != "another-secret-0"
    )
    info = kubectl.json("configmap", "cluster-info", "-n", "kube-public")
    assert (at(info, "data", "jws-kubeconfig-abc125") is not None) == is_signing
    kubectl("delete", "secret", "-n", "kube-system", "bootstrap-token-abc125")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
