"""Domains of failure: clusters, zones, regions and providers, with the clusters in them."""

from collections.abc import Sequence
from typing import Final, Literal

from engine.cli import failures, server_reads
from engine.cli.client import Client
from events.json_values import as_list, part

Domain = Literal["cluster", "zone", "region", "provider"]
ALL: Final[tuple[Domain, ...]] = ("cluster", "zone", "region", "provider")


def members(client: Client, as_of: str) -> dict[tuple[Domain, str], list[str]]:
    """Return the clusters of each domain and name; a cluster in several zones is in each of them."""
    found: dict[tuple[Domain, str], list[str]] = {}
    for cluster in server_reads.pages(client, "clusters", asOf=as_of):
        name, spec = str(part(cluster, "metadata")["name"]), part(cluster, "spec")
        domains: dict[Domain, list[object]] = {
            "cluster": [name],
            "zone": as_list(spec.get("zones")) or [spec.get("zone")],
            "region": [spec.get("region")],
            "provider": [spec.get("provider")],
        }
        for domain in ALL:
            for place in filter(None, domains[domain]):
                found.setdefault((domain, str(place)), []).append(name)
    return found


def clusters_in(client: Client, as_of: str, chosen: dict[Domain, Sequence[str]]) -> list[str]:
    """Return the clusters of the chosen domains; raises Failure for one without clusters."""
    found = members(client, as_of) if any(chosen.values()) else {}
    names: list[str] = []
    for domain, places in chosen.items():
        for place in places:
            if (domain, place) not in found:
                known = ", ".join(sorted(name for each, name in found if each == domain))
                raise failures.Failure(
                    f"no cluster is in {domain} {place}",
                    f"there are: {known}" if known else "see: reballast get clusters",
                )
            names += found[domain, place]
    return names
