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


def check(services: Services, request: Request, name: str, cluster: Cluster | None) -> None:
    """Raises RefusalError unless the request may speak for a cluster, ``cluster`` as far as it is a member."""
    if is_servers_own(services, request):
        return
    try:
        claims = service_tokens.read(_given(request), service_tokens.key_of(services.token), 0)
    except service_tokens.TokenError as error:
        raise RefusalError(401, "authorization", str(error), _REMEDY) from None
    if not claims.agent or claims.agent != name:
        raise RefusalError(403, "authorization", f"the token does not open cluster {name[:253]!r}", _REMEDY)
    if cluster is not None and cluster.head.uid != claims.uid:
        raise RefusalError(403, "authorization", "the token is that of a former cluster", _REMEDY)


def _given(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
