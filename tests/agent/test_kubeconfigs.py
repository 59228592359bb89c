"""Kubeconfigs as kubectl reads them: contexts, files and inline data, tokens, exec plugins."""

import asyncio
import base64
import datetime as dt
import json
import os
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.agent import kubeconfigs
from engine.agent.api_errors import RefusedError
from engine.agent.credentials import Credentials
from engine.agent.kubeconfigs import Access, KubeconfigError
from engine.agent.member_api import MemberApi
from engine.identity import certificates
from tests.agent.certificates import client_certificate

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
    access = kubeconfigs.read(path)
    assert access == Access(
        server="https://there:6443",
        authority="authority",
        authority_file=str(tmp_path / "ca.pem"),
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


@pytest.mark.parametrize("url", ["https://[::1", "https://there:port", "https://there:65536"])
@pytest.mark.parametrize("field", ["server", "proxy-url"])
def test_invalid_address_is_reported(tmp_path: Path, field: str, url: str) -> None:
    path = written(tmp_path / "config", {field: url}, {})
    with pytest.raises(KubeconfigError, match="is not a URL"):
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


@pytest.mark.parametrize(
    ("server", "proxy", "count"),
    [
        ("https://there", "", 1),
        ("HTTPS://there", "http://proxy", 1),
        ("http://there", "https://proxy", 1),
        ("http://there", "http://proxy", 0),
        ("http://there", "", 0),
    ],
)
def test_authorities_of_the_system_are_loaded_for_tls_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, proxy: str, count: int
) -> None:
    made = certificates.make(tmp_path, dt.datetime.now(dt.UTC), ())
    (tmp_path / "system.pem").write_bytes(made.authority)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "system.pem"))
    assert len(kubeconfigs.tls(Access(server=server, proxy=proxy)).get_ca_certs()) == count


@pytest.mark.parametrize(
    ("cluster", "user", "reason"),
    [
        ({}, {"auth-provider": {"name": "gcp"}}, "auth-provider"),
        ({}, {"token": "t", "as": "admin"}, "has as, which is not supported"),
        ({"proxy-url": "socks5://there:1080"}, {}, "socks5"),
    ],
)
def test_unsupported_settings_are_refused(tmp_path: Path, cluster: Json, user: Json, reason: str) -> None:
    with pytest.raises(KubeconfigError, match=reason):
        kubeconfigs.read(written(tmp_path / "config", cluster, user))


def test_missing_current_context_is_named(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("{}")
    with pytest.raises(KubeconfigError, match="no current-context; name one with --context"):
        kubeconfigs.read(tmp_path / "config")


@pytest.mark.parametrize(
    ("server", "configured", "expected"),
    [
        ("https://there:6443", "", "http://proxy:8080"),
        ("https://there:6443", "http://other:1", "http://other:1"),
        ("https://inside.example:6443", "", ""),
        ("https://127.0.0.1:6443", "", ""),
    ],
)
def test_proxy_of_the_environment_is_used_as_by_kubectl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str, configured: str, expected: str
) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:8080")
    monkeypatch.setenv("no_proxy", ".example")
    cluster = {"server": server} | ({"proxy-url": configured} if configured else {})
    assert kubeconfigs.read(written(tmp_path / "config", cluster, {})).proxy == expected


def test_exec_plugin_beside_the_kubeconfig_is_given_the_cluster(tmp_path: Path) -> None:
    plugin = tmp_path / "login"
    plugin.write_text(
        f"#!{sys.executable}\nimport json, os\n"
        "cluster = json.loads(os.environ['KUBERNETES_EXEC_INFO'])['spec']['cluster']\n"
        "print(json.dumps({'status': {'token': cluster['server']}}))\n"
    )
    plugin.chmod(0o755)
    user = {"exec": {"command": "./login", "provideClusterInfo": True}}
    access = kubeconfigs.read(written(tmp_path / "config", {}, user))
    assert asyncio.run(Credentials(access).header()) == "Bearer https://there:6443"


def test_certificate_files_are_read_again_after_a_refusal(tmp_path: Path) -> None:
    (tmp_path / "crt").write_text("first")
    (tmp_path / "key").write_text("a key")
    user = {"client-certificate": "crt", "client-key": str(tmp_path / "key")}
    credentials = Credentials(kubeconfigs.read(written(tmp_path / "config", {}, user)))
    assert asyncio.run(credentials.header()) == ""
    (tmp_path / "crt").write_text("second")
    credentials.forget()
    asyncio.run(credentials.header())
    assert (credentials.certificate, credentials.key) == ("second", "a key")


def test_renewed_certificate_of_an_exec_plugin_is_used(tmp_path: Path) -> None:
    """A server accepts the first certificate once: it answers with the name in the client's certificate."""
    pairs = [client_certificate(name) for name in ("first", "second")]
    made = certificates.make(tmp_path, dt.datetime.now(dt.UTC), ("127.0.0.1",))
    for number, (certificate, key) in enumerate(pairs):
        status = {"clientCertificateData": certificate, "clientKeyData": key}
        (tmp_path / f"{number}.json").write_text(json.dumps({"status": status}))
    (tmp_path / "plugin.py").write_text(
        "import os, pathlib\nhere = pathlib.Path(__file__).parent\nfiles = sorted(here.glob('?.json'))\n"
        "print(files[0].read_text())\nif len(files) > 1: files[0].unlink()\n"
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.certificate, made.key)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata="".join(certificate for certificate, _ in pairs))
    seen: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            seen.append(writer.get_extra_info("peercert")["subject"][0][0][1])
            code = "401 Unauthorized" if seen.count("first") == 2 and seen[-1] == "first" else "200 OK"
            writer.write(f"HTTP/1.1 {code}\r\nContent-Length: 2\r\n\r\n{{}}".encode())

    async def ask() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
        address = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        plugin: Json = {"command": sys.executable, "args": [str(tmp_path / "plugin.py")]}
        api = MemberApi(Access(server=address, authority=made.authority.decode(), exec=plugin))
        await api.version()
        with pytest.raises(RefusedError):
            await api.version()
        await api.version()
        await api.aclose()
        server.close()

    asyncio.run(ask())
    assert seen == ["first", "first", "second"]


def test_certificates_of_clusters_are_not_checked_strictly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python checks strictly by default since 3.13; Kubernetes' clients never do."""
    create = ssl.create_default_context

    def strict(cadata: str | None) -> ssl.SSLContext:
        context = create(cadata=cadata)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)
    context = kubeconfigs.tls(Access(server="https://127.0.0.1"))
    assert not context.verify_flags & ssl.VERIFY_X509_STRICT
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)


async def test_requests_that_begin_together_load_the_certificates_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = await asyncio.to_thread(certificates.make, tmp_path, dt.datetime.now(dt.UTC), ())
    authority = made.authority.decode()
    loads: list[str | None] = []
    create = ssl.create_default_context

    def counted(cadata: str | None) -> ssl.SSLContext:
        loads.append(cadata)
        return create(cadata=cadata)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()

    monkeypatch.setattr(ssl, "create_default_context", counted)
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        api = MemberApi(Access(server=address, authority=authority))
        await asyncio.gather(*(api.version() for _ in range(5)))
        await api.aclose()
    assert loads == [authority]


async def test_requests_that_begin_together_call_the_exec_plugin_once(tmp_path: Path) -> None:
    script, calls = tmp_path / "plugin.py", tmp_path / "calls"
    script.write_text(
        "import json\n"
        f"with open({os.fspath(calls)!r}, 'a') as file: file.write('x')\n"
        "print(json.dumps({'status': {'token': 'secret'}}))\n"
    )
    exec_config: Json = {"command": sys.executable, "args": [str(script)]}
    credentials = Credentials(Access(server="https://there", exec=exec_config))
    headers = await asyncio.gather(*(credentials.header() for _ in range(5)))
    assert headers == ["Bearer secret"] * 5
    assert calls.read_text() == "x"


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
    exec_config: Json = {
        "command": sys.executable,
        "args": [str(script), "-1"],
        "env": [{"name": "WORD", "value": "secret"}],
    }
    credentials = Credentials(Access(server="https://there", exec=exec_config))
    assert [await credentials.header() for _ in range(3)] == ["Bearer secret-1"] * 3
    assert count.read_text() == "xx"
    credentials.forget()
    await credentials.header()
    assert count.read_text() == "xxx"


@pytest.mark.parametrize(
    "printed",
    [
        """{"status": {"token": "t", "expirationTimestamp": "tomorrow"}}""",
        """{"status": {"token": "t", "expirationTimestamp": ""}}""",
        """{"status":""" * 100_000,
    ],
)
async def test_output_of_an_exec_plugin_that_is_not_understood_is_an_error(
    printed: str, tmp_path: Path
) -> None:
    output, script = tmp_path / "output", tmp_path / "plugin.py"
    output.write_text(printed)
    script.write_text(f"import pathlib\nprint(pathlib.Path({os.fspath(output)!r}).read_text())\n")
    exec_config: Json = {"command": sys.executable, "args": [str(script)]}
    with pytest.raises(KubeconfigError, match="exec plugin"):
        await Credentials(Access(server="https://there", exec=exec_config)).header()


async def test_exec_plugin_may_print_null_for_absent_fields(tmp_path: Path) -> None:
    script = tmp_path / "plugin.py"
    status = {"token": "t", "clientCertificateData": None, "clientKeyData": None, "expirationTimestamp": None}
    script.write_text(f"print({json.dumps({'status': status})!r})\n")
    credentials = Credentials(
        Access(server="https://there", exec={"command": sys.executable, "args": [str(script)]})
    )
    assert await credentials.header() == "Bearer t"
    assert (credentials.certificate, credentials.key) == ("", "")


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
