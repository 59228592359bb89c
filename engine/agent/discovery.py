"""The kinds that a Kubernetes API serves, as its discovery documents list them."""

from collections.abc import Iterable
from typing import Final

from events import keys, records
from events.json_values import Json, as_text, at, list_at, objects_at
from events.validation.known_kinds import Kind

AGGREGATED_KIND: Final = "APIGroupDiscoveryList"
ACCEPTED: Final = f"{records.JSON};g=apidiscovery.k8s.io;v=v2;as={AGGREGATED_KIND},{records.JSON}"
"""Accept header for discovery: all groups in one document if the server supports that, else separate lists."""


class Resource(Kind, frozen=True, kw_only=True):
    """A kind as the API serves it; ``watched``: it supports list and watch.

    Only aggregated discovery sets ``singular`` and ``short``, the other names of the kind.
    """

    watched: bool = True
    singular: str = ""


def group_kind(api_version: str, kind: str) -> tuple[str, str]:
    """The API group, empty for the core group, and the kind: the same for all versions of a kind."""
    return keys.group_of(api_version), kind


def preferred(resources: Iterable[Resource]) -> dict[tuple[str, str], Resource]:
    """The resource of each group and kind in the version that the server lists first, which is the preferred one."""
    result: dict[tuple[str, str], Resource] = {}
    for resource in resources:
        result.setdefault(group_kind(resource.api_version, resource.kind), resource)
    return result


def of_version(api_version: str, listed: Json) -> list[Resource]:
    """The kinds in the list of one group version."""
    return [
        Resource(
            api_version=api_version,
            kind=as_text(entry.get("kind")),
            plural=as_text(entry.get("name")),
            namespaced=entry.get("namespaced") is True,
            watched=_is_watched(entry),
        )
        for entry in objects_at(listed, "resources")
        if "/" not in as_text(entry.get("name"))
    ]


def of_aggregated(document: Json) -> list[Resource]:
    """The kinds in a response of aggregated discovery."""
    return [
        Resource(
            api_version=f"{group}/{version}" if (group := as_text(at(item, "metadata", "name"))) else version,
            kind=as_text(at(entry, "responseKind", "kind")),
            plural=as_text(entry.get("resource")),
            namespaced=entry.get("scope") == "Namespaced",
            watched=_is_watched(entry),
            singular=as_text(entry.get("singularResource")),
            short=tuple(map(as_text, list_at(entry, "shortNames"))),
        )
        for item in objects_at(document, "items")
        for served in objects_at(item, "versions")
        if (version := as_text(served.get("version")))
        for entry in objects_at(served, "resources")
    ]


def _is_watched(entry: Json) -> bool:
    return {"list", "watch"} <= {str(verb) for verb in list_at(entry, "verbs")}
