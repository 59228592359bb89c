"""Access to a member's API: parsed from a kubeconfig, or from a pod's service account.

Exec plugins run when a token is needed (``credentials``). Auth providers, which Kubernetes has removed, are
not supported.
"""

import base64
import binascii
import ssl
import tempfile
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import yaml
from msgspec import Struct

from events.json_values import Json, as_text, list_at, object_at

_LOOPBACK: Final = frozenset({"localhost", "::1"})
_UNSUPPORTED: Final = frozenset({"auth-provider", "as", "as-uid", "as-groups", "as-user-extra"})
"""Unsupported fields of a user. They are errors: if they were ignored, requests would have unexpected rights."""

_POD: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class KubeconfigError(ValueError):
    """The kubeconfig does not describe access to a cluster; the message names the missing part."""


class Access(Struct, frozen=True, kw_only=True):
    """Address, trust and credentials of an API server; certificates and keys in PEM, empty for none.

    ``authority_file``, ``certificate_file``, ``key_file`` and ``token_file`` are read again every minute, and after a
    failed connection or a refusal.
    """

    server: str
    authority: str = ""
    authority_file: str = ""
    is_insecure: bool = False
    server_name: str = ""
    proxy: str = ""
    certificate: str = ""
    key: str = ""
    certificate_file: str = ""
    key_file: str = ""
    token: str = ""
    token_file: str = ""
    username: str = ""
    password: str = ""
    exec: Json | None = None


def in_pod() -> Access:
    """Access with the pod's own service account. Raises OSError outside of a pod."""
    return Access(
        server="https://kubernetes.default.svc",
        authority=(_POD / "ca.crt").read_text(),
        authority_file=str(_POD / "ca.crt"),
        token_file=str(_POD / "token"),
    )


def read(path: Path, context: str = "") -> Access:
    """The access of a kubeconfig context, by default of the current one.

    Raises KubeconfigError, or OSError if a file can't be read.
    """
    try:
        config = object_at(yaml.safe_load(path.read_text()))
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise KubeconfigError(f"{path}: {error}") from None
    name = context or as_text(config.get("current-context"))
    chosen = _named(config, "contexts", "context", name)
    cluster = _named(config, "clusters", "cluster", as_text(chosen.get("cluster")))
    user = _named(config, "users", "user", as_text(chosen.get("user"))) if chosen.get("user") else {}
    server = as_text(cluster.get("server"))
    if not server:
        raise KubeconfigError(f"{path}: the cluster of context {name!r} has no server")
    _check_url(path, "server", server)
    for field in _UNSUPPORTED & user.keys():
        raise KubeconfigError(f"{path}: the user of context {name!r} has {field}, which is not supported")
    return Access(
        server=server.rstrip("/"),
        authority=_content(path, cluster, "certificate-authority"),
        authority_file=_file(path, cluster, "certificate-authority"),
        is_insecure=cluster.get("insecure-skip-tls-verify") is True,
        server_name=as_text(cluster.get("tls-server-name")),
        proxy=_proxy(path, as_text(cluster.get("proxy-url")) or _environment_proxy(server)),
        certificate=_content(path, user, "client-certificate"),
        key=_content(path, user, "client-key"),
        certificate_file=_file(path, user, "client-certificate"),
        key_file=_file(path, user, "client-key"),
        token=as_text(user.get("token")),
        token_file=str(path.parent / as_text(user.get("tokenFile"))) if user.get("tokenFile") else "",
        username=as_text(user.get("username")),
        password=as_text(user.get("password")),
        exec=_plugin(path, object_at(user, "exec")) if user.get("exec") is not None else None,
    )


def tls(access: Access, certificate: str = "", key: str = "", authority: str = "") -> ssl.SSLContext:
    """The TLS context for connections; raises KubeconfigError if a certificate can't be loaded.

    ``certificate``, ``key`` and ``authority`` come from an exec plugin or files and replace those in ``access``.
    """
    trusted = authority or access.authority
    is_plain = all(urlsplit(url).scheme == "http" for url in (access.server, access.proxy or access.server))
    try:
        if is_plain and not trusted:
            # No connection uses TLS; the authorities of the system would take 30 ms to load.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        else:
            context = ssl.create_default_context(cadata=trusted or None)
            # Kubernetes' own clients accept certificates that RFC 5280 forbids, such as those of EKS.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if access.is_insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        certificate, key = certificate or access.certificate, key or access.key
        if certificate:
            with tempfile.NamedTemporaryFile("w", suffix=".pem") as both:
                # ``load_cert_chain`` only takes files. This one is readable by its owner only and deleted
                # after use.
                both.write(f"{certificate}\n{key}")
                both.flush()
                context.load_cert_chain(both.name)
    except (ssl.SSLError, ValueError) as error:
        raise KubeconfigError(f"certificates of {access.server}: {error}") from None
    return context


def _check_url(path: Path, field: str, url: str) -> None:
    """Raise KubeconfigError for a URL with an invalid address or port, to which no connection is possible."""
    try:
        _ = urlsplit(url).port
    except ValueError as error:
        raise KubeconfigError(f"{path}: the {field} {url!r} is not a URL: {error}") from None


def _proxy(path: Path, url: str) -> str:
    _check_url(path, "proxy", url)
    if url and urlsplit(url).scheme not in {"http", "https"}:
        raise KubeconfigError(f"{path}: the proxy {url} is not supported; use one of http:// or https://")
    return url


def _environment_proxy(server: str) -> str:
    """The proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY set for a server; empty for loopback, as in kubectl."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    if host in _LOOPBACK or host.startswith("127.") or proxy_bypass(host):
        return ""
    return getproxies().get(parts.scheme, "")


def _plugin(path: Path, plugin: Json) -> Json:
    """The exec plugin; a relative path of its command is resolved against the directory of the kubeconfig."""
    command = as_text(plugin.get("command"))
    return {**plugin, "command": str(path.parent / command)} if "/" in command else plugin


def _named(config: Json, many: str, singular: str, name: str) -> Json:
    for entry in list_at(config, many):
        fields = object_at(entry)
        if fields.get("name") == name:
            return object_at(fields, singular)
    if not name:
        raise KubeconfigError("the kubeconfig has no current-context; name one with --context")
    raise KubeconfigError(f"the kubeconfig has no {singular} {name!r}")


def _file(path: Path, fields: Json, name: str) -> str:
    """The path of the file that a field names; empty without one, or if the kubeconfig contains the data."""
    return (
        str(path.parent / as_text(fields[name]))
        if fields.get(name) and not fields.get(f"{name}-data")
        else ""
    )


def _content(path: Path, fields: Json, name: str) -> str:
    """The decoded ``-data`` field, or the contents of the named file; paths are relative to the kubeconfig."""
    if data := as_text(fields.get(f"{name}-data")):
        try:
            return base64.b64decode(data, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise KubeconfigError(f"{path}: {name}-data is not base64-encoded PEM") from None
    file = as_text(fields.get(name))
    try:
        return (path.parent / file).read_text() if file else ""
    except UnicodeDecodeError:
        raise KubeconfigError(f"{path}: {name} {file} is not PEM: it is not text in UTF-8") from None
