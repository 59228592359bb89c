"""Kubeconfigs as kubectl reads them: contexts, files and inline data, tokens, exec plugins."""

import base64
import datetime as dt
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.agent import kubeconfigs
from engine.agent.credentials import Credentials
from engine.agent.kubeconfigs import Access, KubeconfigError
from engine.identity import certificates

Json = dict[str, Any]
_TOKEN = "t"  # noqa: S105  # it opens nothing


def written(path: Path, cluster: Json, user: Json) -> Path:
    config = {
        "current-context": "there",
        "contexts": [
            {"name": "there", "context": {"cluster": "c", "user": "u"}},
            {"name": "nobody", "context": {"cluster": "c"}},
            {"name": "broken", "context": {"cluster": "missing", "user": "u"}},
        ],
        "clusters": [{"name": "c", "cluster": {"server": "https://there:6443/", **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(config))
    return path


def test_inline_data_and_relative_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("authority")
    data = base64.b64encode(b"certificate").decode()
    path = written(
        tmp_path / "config",
        {"certificate-authority": "ca.pem", "tls-server-name": "there.example"},
        {"client-certificate-data": data, "tokenFile": "token"},
    )
    found = kubeconfigs.read(path)
    assert found == Access(
        server="https://there:6443",
        authority="authority",
        server_name="there.example",
        certificate="certificate",
        token_file=str(tmp_path / "token"),
    )
    assert kubeconfigs.read(path, "nobody").token_file == ""


@pytest.mark.parametrize("context", ["broken", "absent"])
def test_missing_context_or_entry_is_named(tmp_path: Path, context: str) -> None:
    with pytest.raises(KubeconfigError, match=r"missing|absent"):
        kubeconfigs.read(written(tmp_path / "config", {}, {}), context)


@pytest.mark.parametrize("text", ["", "[]", "{", "a: &a [*a]", "clusters: 7"])
def test_invalid_kubeconfig_is_reported(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(KubeconfigError):
        kubeconfigs.read(path)


@pytest.mark.parametrize("name", ["certificate-authority", "client-certificate", "client-key"])
def test_certificate_file_in_der_is_reported(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.der").write_bytes(b"\x30\x82\xff")
    path = written(tmp_path / "config", {name: "file.der"}, {name: "file.der"})
    with pytest.raises(KubeconfigError, match=rf"{name} file\.der is not PEM"):
        kubeconfigs.read(path)


def test_certificates_are_read_from_contents(tmp_path: Path) -> None:
    made = certificates.make(tmp_path, dt.datetime.now(dt.UTC), ("127.0.0.1",))
    access = Access(
        server="https://there",
        authority=made.authority.decode(),
        certificate=made.certificate.read_text(),
        key=made.key.read_text(),
    )
    assert kubeconfigs.tls(access).get_ca_certs()
    with pytest.raises(KubeconfigError):
        kubeconfigs.tls(Access(server="https://there", authority="none"))


async def test_exec_plugin_is_called_again_after_its_token_expires(tmp_path: Path) -> None:
    count = tmp_path / "count"
    script = tmp_path / "plugin.py"
    script.write_text(
        "import json, os, pathlib, sys\n"
        f"path = pathlib.Path({os.fspath(count)!r})\n"
        "path.write_text(path.read_text() + 'x' if path.exists() else 'x')\n"
        "assert json.loads(os.environ['KUBERNETES_EXEC_INFO'])['kind'] == 'ExecCredential'\n"
        "status = {'token': os.environ['WORD'] + sys.argv[1]}\n"
        "if len(path.read_text()) == 1: status['expirationTimestamp'] = '2020-01-01T00:00:00Z'\n"
        "print(json.dumps({'status': status}))\n"
    )
    asked: Json = {
        "command": sys.executable,
        "args": [str(script), "-1"],
        "env": [{"name": "WORD", "value": "secret"}],
    }
    credentials = Credentials(Access(server="https://there", exec=asked))
    assert [await credentials.header() for _ in range(3)] == ["Bearer secret-1"] * 3
    assert count.read_text() == "xx"
    credentials.forget()
    await credentials.header()
    assert count.read_text() == "xxx"


async def test_tokens_passwords_and_token_files_become_headers(tmp_path: Path) -> None:
    assert await Credentials(Access(server="s", token=_TOKEN)).header() == f"Bearer {_TOKEN}"
    pair = base64.b64encode(f"u:{_TOKEN}".encode()).decode()
    assert await Credentials(Access(server="s", username="u", password=_TOKEN)).header() == f"Basic {pair}"
    file = tmp_path / "token"
    file.write_text("one\n")
    credentials = Credentials(Access(server="s", token_file=str(file)))
    assert await credentials.header() == "Bearer one"
    file.write_bytes(b"\xff")
    credentials.forget()
    with pytest.raises(KubeconfigError, match="not text in UTF-8"):
        await credentials.header()
    file.unlink()
    credentials.forget()
    with pytest.raises(KubeconfigError):
        await credentials.header()
