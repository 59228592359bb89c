"""Where a server listens: what stands in the file that it leaves in its data directory, for the commands to find it."""

from typing import Final

from msgspec import Struct

FILE: Final = "endpoint.json"


class Endpoint(Struct, frozen=True, kw_only=True):
    """The server's address, the token that it asks for, and its process.

    ``kube_url`` is where the Kubernetes API is served, ``kubeconfig`` the file with which clients reach it.
    """

    url: str
    token: str
    pid: int = 0
    kube_url: str = ""
    kubeconfig: str = ""

    @property
    def login_url(self) -> str:
        """The address with which a browser gets its cookie."""
        return f"{self.url}/?token={self.token}"
