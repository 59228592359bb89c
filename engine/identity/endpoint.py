"""The address of a running server, as stored in its data directory, where other commands find it."""

import ssl
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

FILE: Final = "endpoint.json"
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class Endpoint(Struct, frozen=True, kw_only=True):
    """Address, token and process id of a server.

    ``authority`` is the certificate (PEM) that verifies the server's TLS; ``login`` is the code with which a
    browser starts a session. ``kube_url`` is the address of the Kubernetes API, ``kubeconfig`` the path of a
    file for its clients. ``observes`` names the control plane that the server observes, if any.
    """

    url: str
    token: str
    pid: int = 0
    kube_url: str = ""
    kubeconfig: str = ""
    authority: str = ""
    login: str = ""
    observes: str = ""

    @property
    def login_url(self) -> str:
        """The address at which a browser gets its session cookie."""
        return f"{self.url}/?login={self.login}"


def verification(url: str, authority: str) -> ssl.SSLContext | bool:
    """Return the TLS verification for clients of a server, for httpx's parameter ``verify``.

    With an authority (PEM) only that one is trusted. On the loopback the host name is not checked, because the
    server's certificate may have other names. Without TLS the result is False, which saves loading the system's
    authorities.
    """
    where = urlsplit(url)
    if where.scheme != "https":
        return False
    if not authority:
        return True
    context = ssl.create_default_context(cadata=authority)
    # The authority may be the server's own certificate: trust it, although its chain has no root certificate.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = where.hostname not in _LOOPBACK
    return context
