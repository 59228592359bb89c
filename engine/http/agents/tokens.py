"""Agents' tokens: signed like service account tokens, valid for one cluster identified by its uid.

A token stays valid after its cluster has left, so that the agent can still receive removals, until another
cluster joins under that name.
"""

from typing import Final

from starlette.requests import Request

from engine.http.errors import RefusalError
from engine.http.incoming_requests import bearer_token, is_same
from engine.kubeapi.rights import service_tokens
from projections.clusters import Cluster

_REMEDY: Final = "create the agent's token with: reballast join"


def agent_token(servers_token: str, cluster: Cluster) -> str:
    """The token of a cluster's agent. It never expires, and is the same on each call for the same cluster."""
    claims = service_tokens.Claims(
        sub=f"system:agent:{cluster.name}", uid=cluster.head.uid, agent=cluster.name
    )
    return service_tokens.signed(claims, service_tokens.key_of(servers_token))


def is_servers_own(servers_token: str, request: Request) -> bool:
    """Whether the request carries the server's own (administrator's) token."""
    return is_same(bearer_token(request.headers), servers_token)


def read(servers_token: str, request: Request, name: str) -> str | None:
    """Check the token; return the uid of the cluster that it is for, None for the server's own token.

    Raises RefusalError: 401 for an invalid token, 403 for the token of another cluster.
    """
    if is_servers_own(servers_token, request):
        return None
    try:
        claims = service_tokens.read(bearer_token(request.headers), service_tokens.key_of(servers_token), 0)
    except service_tokens.TokenError as error:
        raise RefusalError(401, "authorization", str(error), _REMEDY) from None
    if not claims.agent or claims.agent != name:
        raise RefusalError(
            403, "authorization", f"the token is not valid for cluster {name[:253]!r}", _REMEDY
        )
    return claims.uid


def check(uid: str | None, cluster: Cluster | None) -> None:
    """Raise RefusalError (403) if the token's ``uid`` is that of an earlier cluster of the same name."""
    if uid is not None and cluster is not None and cluster.head.uid != uid:
        raise RefusalError(
            403, "authorization", "the token belongs to an earlier cluster of this name", _REMEDY
        )
