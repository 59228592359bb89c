"""Tokens of agents: signed as those of service accounts are, and good for one cluster, as long as it is the same one.

A cluster that has left can still be told what must go: the token holds until another cluster joins by that name.
"""

import hmac
from typing import Final

from starlette.requests import Request

from engine.gateway.refusals import RefusalError
from engine.gateway.services import Services
from engine.kube import service_tokens
from projections.clusters import Cluster

_REMEDY: Final = "make the agent's token with: reballast join"


def made(services: Services, cluster: Cluster) -> str:
    """The token of a cluster's agent: the same for the same cluster, for it never expires."""
    claims = service_tokens.Claims(
        sub=f"system:agent:{cluster.name}", uid=cluster.head.uid, agent=cluster.name
    )
    return service_tokens.signed(claims, service_tokens.key_of(services.token))


def is_servers_own(services: Services, request: Request) -> bool:
    """Whether the request carries the token that opens everything."""
    return hmac.compare_digest(_given(request).encode("utf-8", "replace"), services.token.encode())


def read(services: Services, request: Request, name: str) -> str | None:
    """The uid of the cluster that a request may speak for; None for the server's own token, which speaks for all.

    Raises RefusalError where the token does not open the cluster with this name.
    """
    if is_servers_own(services, request):
        return None
    try:
        claims = service_tokens.read(_given(request), service_tokens.key_of(services.token), 0)
    except service_tokens.TokenError as error:
        raise RefusalError(401, "authorization", str(error), _REMEDY) from None
    if not claims.agent or claims.agent != name:
        raise RefusalError(403, "authorization", f"the token does not open cluster {name[:253]!r}", _REMEDY)
    return claims.uid


def check(uid: str | None, cluster: Cluster | None) -> None:
    """Raises RefusalError where a token was made for a former cluster of that name; ``uid`` is what it says."""
    if uid is not None and cluster is not None and cluster.head.uid != uid:
        raise RefusalError(403, "authorization", "the token is that of a former cluster", _REMEDY)


def _given(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
