"""Authentication: requests without the token are refused, and the server's certificate is verified."""

import ssl
from pathlib import Path

import httpx
import msgspec
import pytest

from engine.identity.endpoint import FILE, Endpoint


@pytest.fixture
def endpoint(served: Path) -> Endpoint:
    return msgspec.json.decode((served / FILE).read_bytes(), type=Endpoint)


def test_without_a_token_only_health_checks_are_served(served: Path, endpoint: Endpoint) -> None:
    trusted = ssl.create_default_context(cafile=str(served / "kube-ca.pem"))
    with httpx.Client(base_url=endpoint.kube_url, verify=trusted) as client:
        refused = client.get("/api/v1/namespaces")
        assert refused.status_code == 401
        assert refused.json()["reason"] == "Unauthorized"
        assert client.get("/readyz").text == "ok"
        wrong = client.get("/apis", headers={"authorization": "Bearer wrong"})
        assert wrong.status_code == 401
        known = client.get("/apis", headers={"authorization": f"Bearer {endpoint.token}"})
        assert known.json()["kind"] == "APIGroupList"


def test_certificate_is_not_trusted_without_the_authority(endpoint: Endpoint) -> None:
    with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
        httpx.get(f"{endpoint.kube_url}/readyz")


def test_key_files_are_readable_by_their_owner_only(served: Path) -> None:
    for name in ("kubeconfig", "kube-ca.key", "kube-server.key", "server.token", FILE):
        assert (served / name).stat().st_mode & 0o077 == 0
