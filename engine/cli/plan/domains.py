"""The clusters of the failure domains (zones, regions, providers) that a command names."""

from collections.abc import Sequence

from engine.cli import failures, server_reads
from engine.cli.client import Client
from engine.plans import drills


def clusters_in(client: Client, as_of: str, chosen: dict[drills.Domain, Sequence[str]]) -> list[str]:
    """Return the clusters of the chosen domains; raises Failure for one without clusters."""
    result: dict[drills.Place, list[str]] = {}
    if any(chosen.values()):
        result = drills.places(server_reads.objects(client, "clusters", asOf=as_of))
    names: list[str] = []
    for domain, places in chosen.items():
        for place in places:
            if (domain, place) not in result:
                known = ", ".join(sorted(name for each, name in result if each == domain))
                raise failures.Failure(
                    f"no cluster is in {domain} {place}",
                    f"there are: {known}" if known else "see: reballast get clusters",
                )
            names += result[domain, place]
    return names
