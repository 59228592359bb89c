"""Credentials for requests to a member's API: token, token file, password, or exec plugin.

Files and plugins are read again before their tokens expire, in a thread because both block.
"""

import base64
import os
import subprocess
import time
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import msgspec

from engine.agent.kubeconfigs import Access, KubeconfigError
from events import times
from events.json_values import Json, as_text, list_at, object_at

_FILE_SECONDS: Final = 60.0
_PLUGIN_SECONDS: Final = 60.0
_EARLY_SECONDS: Final = 30.0
_API_VERSION: Final = "client.authentication.k8s.io/v1"


class Credentials:
    """Credentials for one API, read again when they expire.

    ``header()`` sets ``certificate`` and ``key`` to a client certificate from a plugin or from files, and ``authority``
    to the trusted certificates from a file (all PEM); without a plugin or files they stay empty.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self._header = ""
        self._until_s = 0.0
        self._lock = anyio.Lock()
        self._authority_until_s = 0.0
        self.certificate = ""
        self.key = ""
        self.authority = ""

    async def header(self) -> str:
        """The value of ``Authorization``, empty with a client certificate. Raises KubeconfigError."""
        if time.time() < min(self._until_s, self._authority_until_s):
            return self._header
        async with self._lock:
            # Hold the lock, so that concurrent requests do not start several plugins.
            if time.time() >= self._authority_until_s:
                self.authority, self._authority_until_s = await anyio.to_thread.run_sync(self._trusted)
            if time.time() >= self._until_s:
                self._header, self._until_s = await anyio.to_thread.run_sync(self._requested)
            return self._header

    def forget(self) -> None:
        """Make the next request read the credentials again; for use after the server refused them."""
        if self._access.exec is not None or self._access.token_file or self._access.certificate_file:
            self._until_s = 0.0

    def forget_files(self) -> None:
        """Make the next request read the files again; for use after a failed connection, as they may have changed."""
        self._authority_until_s = 0.0
        if self._access.exec is None:
            self.forget()

    def _trusted(self) -> tuple[str, float]:
        """The trusted certificates of a file, and when to read it again (seconds since 1970); blocks."""
        if not self._access.authority_file:
            return "", float("inf")
        return _read(self._access.authority_file), time.time() + _FILE_SECONDS

    def _requested(self) -> tuple[str, float]:
        """The header and its expiry (seconds since 1970); blocks."""
        access = self._access
        if access.exec is not None:
            return self._plugin(access.exec)
        if access.token_file:
            return f"Bearer {_read(access.token_file).strip()}", time.time() + _FILE_SECONDS
        if access.token:
            return f"Bearer {access.token}", float("inf")
        if access.username:
            pair = base64.b64encode(f"{access.username}:{access.password}".encode()).decode()
            return f"Basic {pair}", float("inf")
        if access.certificate_file and access.key_file:
            self.certificate, self.key = _read(access.certificate_file), _read(access.key_file)
            return "", time.time() + _FILE_SECONDS
        return "", float("inf")

    def _plugin(self, plugin: Json) -> tuple[str, float]:
        command = [
            str(plugin.get("command", "")),
            *(str(argument) for argument in list_at(plugin, "args")),
        ]
        version = str(plugin.get("apiVersion") or _API_VERSION)
        spec: Json = {"interactive": False}
        if plugin.get("provideClusterInfo") is True:
            spec["cluster"] = _cluster_info(self._access)
        exec_info = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
        environment = {**os.environ, "KUBERNETES_EXEC_INFO": msgspec.json.encode(exec_info).decode()}
        for entry in list_at(plugin, "env"):
            fields = object_at(entry)
            environment[str(fields.get("name", ""))] = str(fields.get("value", ""))
        environment.pop("", None)
        try:
            # The command comes from the user's own kubeconfig, which kubectl runs as well.
            ran = subprocess.run(  # noqa: S603
                command, env=environment, capture_output=True, check=True, timeout=_PLUGIN_SECONDS
            )
            status = object_at(msgspec.json.decode(ran.stdout, type=dict[str, object]), "status")
            until = status.get("expirationTimestamp")
            until_s = (
                times.from_text(until) / 1000 - _EARLY_SECONDS if isinstance(until, str) else float("inf")
            )
        except (OSError, subprocess.SubprocessError, ValueError, RecursionError) as error:
            hint = str(plugin.get("installHint") or "").strip()
            raise KubeconfigError(f"exec plugin {command[0]!r}: {error}" + f"; {hint}" * bool(hint)) from None
        self.certificate = as_text(status.get("clientCertificateData"))
        self.key = as_text(status.get("clientKeyData"))
        token = status.get("token")
        return (f"Bearer {token}" if token else ""), until_s


def _cluster_info(access: Access) -> Json:
    """The cluster, in the form of ``spec.cluster`` of an ExecCredential."""
    info: Json = {
        "server": access.server,
        "tls-server-name": access.server_name,
        "insecure-skip-tls-verify": access.is_insecure,
        "certificate-authority-data": base64.b64encode(access.authority.encode()).decode(),
        "proxy-url": access.proxy,
    }
    return {name: value for name, value in info.items() if value}


def _read(file: str) -> str:
    """The contents of a file of credentials. Raises KubeconfigError."""
    try:
        return Path(file).read_text()
    except OSError as error:
        raise KubeconfigError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise KubeconfigError(f"{file} has no token or PEM: it is not text in UTF-8") from None
