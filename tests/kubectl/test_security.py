"""Who may come in: nobody without the token, and nobody is fooled about who answers."""

import ssl
from pathlib import Path

import httpx
import msgspec
import pytest

from engine.identity.endpoint import FILE, Endpoint


@pytest.fixture
def endpoint(served: Path) -> Endpoint:
    return msgspec.json.decode((served / FILE).read_bytes(), type=Endpoint)


def test_without_the_token_everything_is_closed_but_health(served: Path, endpoint: Endpoint) -> None:
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


def test_the_server_is_nobody_else(endpoint: Endpoint) -> None:
    with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
        httpx.get(f"{endpoint.kube_url}/readyz")


def test_only_the_owner_reads_the_keys(served: Path) -> None:
    for name in ("kubeconfig", "kube-ca.key", "kube-server.key", "server.token", FILE):
        assert (served / name).stat().st_mode & 0o077 == 0
