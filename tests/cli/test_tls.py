"""TLS for the query API, in an existing data directory: trust and file permissions."""

import datetime as dt
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine.cli import failures, main
from engine.identity import certificates
from tests.cli.servers import Shell, output_of, running

pytestmark = pytest.mark.slow
NAME = "reballast.example"


def endpoint_of(directory: Path) -> dict[str, Any]:
    return json.loads((directory / "endpoint.json").read_bytes())


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A server that creates its own certificate, open to the network, in a directory that others may enter."""
    directory = tmp_path_factory.mktemp("tls") / "data"
    directory.mkdir(mode=0o755)
    directory.chmod(0o755)
    with running(directory, "--tls", "--host", "0.0.0.0", "--allowed-host", NAME, "--no-members"):  # noqa: S104
        yield directory


def test_commands_trust_the_certificate_of_the_data_directory(
    secured: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shell = Shell(secured, capsys)
    shell("get", "clusters")
    monkeypatch.setenv("REBALLAST_SERVER", endpoint_of(secured)["url"])
    monkeypatch.setenv("REBALLAST_TOKEN", endpoint_of(secured)["token"])
    assert main.run(["get", "clusters"]) == failures.NO_SERVER
    assert "certificate verify failed" in capsys.readouterr().err
    monkeypatch.setenv("REBALLAST_CA", str(secured / "kube-ca.pem"))
    assert main.run(["get", "clusters"]) == failures.OK
    (tmp_path / "none.pem").write_text("no certificate")
    monkeypatch.setenv("REBALLAST_CA", str(tmp_path / "none.pem"))
    assert main.run(["get", "clusters"]) == failures.FAILED
    assert "set REBALLAST_CA to a file with a certificate (PEM)" in capsys.readouterr().err


def test_server_answers_with_tls_only_for_its_host_names(secured: Path) -> None:
    endpoint = endpoint_of(secured)
    assert endpoint["url"].startswith("https://127.0.0.1:")
    trusted = ssl.create_default_context(cadata=endpoint["authority"])
    with httpx.Client(base_url=endpoint["url"], verify=trusted, trust_env=False) as client:
        entered = client.get(f"/?login={endpoint['login']}")
        named = client.get("/healthz", headers={"host": NAME})
        foreign = client.get("/healthz", headers={"host": "evil.example"})
    assert "__Host-reballast-" in entered.headers["set-cookie"]
    assert "Secure" in entered.headers["set-cookie"]
    assert (named.status_code, foreign.status_code) == (200, 421)
    with pytest.raises(httpx.TransportError):
        httpx.get(endpoint["url"].replace("https", "http") + "/healthz", trust_env=False)


def test_all_files_are_private_and_an_open_directory_causes_a_warning(secured: Path) -> None:
    loose = {path.name: oct(path.stat().st_mode) for path in secured.iterdir() if path.stat().st_mode & 0o077}
    assert loose == {}
    assert {"log.sqlite-wal", "views.sqlite", "endpoint.json", "kubeconfig"} <= {
        path.name for path in secured.iterdir()
    }
    output = output_of(secured).read_text()
    assert f"mode=0755 path={secured} remedy='chmod 700 {secured}'" in output


def test_given_certificate_is_served_and_trusted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = certificates.make(tmp_path, dt.datetime.now(dt.UTC), (NAME,))
    words = ("--tls-certificate", str(made.certificate), "--tls-key", str(made.key), "--no-members")
    data = tmp_path / "data"
    with running(data, *words):
        endpoint = endpoint_of(data)
        assert endpoint["authority"].encode() == made.certificate.read_bytes()
        Shell(data, capsys)("get", "clusters")
        other = ssl.create_default_context(cafile=str(data / "kube-ca.pem"))
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            httpx.get(f"{endpoint['url']}/healthz", verify=other, trust_env=False)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tls-certificate", "a.pem"], "a certificate needs its key"),
        (["--tls-certificate", "a.pem", "--tls-key", "b.pem"], "a.pem with b.pem: No such file or directory"),
        (["--allowed-host", "http://a"], "--allowed-host 'http://a' is not a host name"),
    ],
)
def test_invalid_certificate_or_host_options_are_refused(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code = 1 if "No such" in message else 2
    shell = Shell(tmp_path / "data", capsys)
    shell("up", *words, code=code)
    assert message in shell.errors.replace(f"{tmp_path}/", "")
    assert not (tmp_path / "data").exists()
