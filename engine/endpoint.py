"""Where a server listens: what stands in the file that it leaves in its data directory, for the commands to find it."""

import ssl
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct

FILE: Final = "endpoint.json"
_HTTPS: Final = "https"
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class Endpoint(Struct, frozen=True, kw_only=True):
    """The server's address, the token that it asks for, and its process.

    ``authority`` is the certificate (PEM) by which clients know a server with TLS; ``login`` the code with which a
    browser begins a session. ``kube_url`` is where the Kubernetes API is served, ``kubeconfig`` the file with which
    clients reach it.
    """

    url: str
    token: str
    pid: int = 0
    kube_url: str = ""
    kubeconfig: str = ""
    authority: str = ""
    login: str = ""

    @property
    def login_url(self) -> str:
        """The address with which a browser gets its cookie."""
        return f"{self.url}/?login={self.login}"


def verification(url: str, authority: str) -> ssl.SSLContext | bool:
    """How a client makes sure that it speaks to the server at an address, as httpx takes it.

    With an authority (PEM) it trusts that one alone. The certificate of a server on this machine may have other names
    than the loopback's; whoever has it may be believed there. False where there is no TLS: reading the machine's own
    authorities takes time.
    """
    where = urlsplit(url)
    if where.scheme != _HTTPS:
        return False
    if not authority:
        return True
    context = ssl.create_default_context(cadata=authority)
    # The certificate of the server itself may be all that is known of it.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = where.hostname not in _LOOPBACK
    return context
