"""``unjoin``: remove a cluster, wait until it has left, and report the remaining works."""

import time
from typing import Annotated, Final
from urllib.parse import quote

from cyclopts import Parameter, validators

from engine.cli import failures, kube_objects, options, output, results
from engine.cli.client import Client
from engine.cli.kube_objects import KubeObjects, Target
from engine.cli.results import Result
from engine.http.query.response_types import Listing
from events.json_values import Json, object_at
from events.validation import known_kinds

WAIT_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.25
_COUNTED_MAX: Final = 1_000
Wait = Annotated[
    float,
    Parameter(help="Seconds to wait for the removal; 0: do not wait.", validator=validators.Number(gte=0)),
]
Force = Annotated[
    bool,
    Parameter(
        negative=(),
        help="Remove the Cluster after the wait even if works remain; their objects stay in the cluster.",
    ),
]


def unjoin(
    name: options.Cluster,
    /,
    *,
    wait: Wait = WAIT_SECONDS,
    force: Force = False,
    server: options.Server = options.SERVER,
) -> int:
    target = Target(known_kinds.CLUSTER, "", name)
    target.check_name()
    with server.client() as client:
        objects = KubeObjects(client)
        uid = _uid(client, name)
        outcomes = [objects.delete(target)]
        if outcomes[0].problems:
            return results.print_results(outcomes, as_json=server.json)
        if _has_left(client, name, uid, wait):
            return _print_outcome(outcomes, server, f"cluster/{name} removed")
        if force:
            left = _remaining_works(client, name)
            # Without its finalizer the Cluster is deleted immediately, even if workloads remain in the cluster.
            released = objects.patch(target, {"metadata": {"finalizers": []}})
            outcomes = [kube_objects.result(target, "deleted", released)]
            if outcomes[0].problems:
                return results.print_results(outcomes, as_json=server.json)
            return _print_outcome(outcomes, server, f"cluster/{name} removed by force: {left}")
        if not wait:
            return _print_outcome(outcomes, server, f"cluster/{name} is being removed")
        raise failures.Failure(
            f"cluster/{name} is not removed after {wait:g} s: {_remaining_works(client, name)}",
            "the removal continues; check that its agent runs, wait longer, or remove it at once: --wait 0 --force",
        )


def _print_outcome(outcomes: list[Result], server: options.Server, text: str) -> int:
    if server.json:
        return results.print_results(outcomes, as_json=True)
    output.print_line(text)
    return failures.OK


def _has_left(client: Client, name: str, uid: str, wait: float) -> bool:
    """Wait until the cluster has left; prints the remaining works when their number changes. False on timeout."""
    end_s = time.monotonic() + wait
    printed = ""
    while _uid(client, name) == uid:
        if time.monotonic() >= end_s:
            return False
        left = _remaining_works(client, name)
        if left != printed:
            output.warn(f"cluster/{name} is being removed: {left}")
            printed = left
        time.sleep(_POLL_SECONDS)
    return True


def _uid(client: Client, name: str) -> str:
    """The cluster's uid, which differs if it was joined again; empty if it does not exist."""
    cluster = client.find(f"clusters/{quote(name, safe='')}", Json) or {}
    return str(object_at(cluster, "metadata").get("uid", ""))


def _remaining_works(client: Client, name: str) -> str:
    """The remaining works of a cluster as text."""
    page = client.get("works", Listing, cluster=name, limit=_COUNTED_MAX)
    count = len(page.items)
    if not count:
        return "no report yet that all works are removed"
    more = "more than " if page.continue_ else ""
    return f"{more}{count} {'work' if count == 1 else 'works'} not yet removed"
