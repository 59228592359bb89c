"""Discovery documents of an API, built from its catalogue.

Both forms are served: one document per level, and the aggregated form in versions v2 and v2beta1. The
client's Accept header selects the form.
"""

from typing import Final, TypedDict

from engine.kubeapi.schema.resources import Catalogue, Group, Resource, Subresource
from events.validation import kinds_table

VERSION: Final = {
    "major": "1",
    "minor": "36",
    "gitVersion": kinds_table.RELEASE,
    "gitCommit": "0000000000000000000000000000000000000000",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "go1.26.8",
    "compiler": "gc",
    "platform": "linux/amd64",
}
"""Response of ``/version``."""

_AGGREGATED: Final = "apidiscovery.k8s.io"


class ApiVersions(TypedDict):
    """The document APIVersions: the versions of the core group."""

    kind: str
    versions: list[str]
    serverAddressByClientCIDRs: list[dict[str, str]]


class ApiGroup(TypedDict, total=False):
    """The document APIGroup: a group and its versions; in an ``ApiGroupList`` it has no kind and apiVersion."""

    kind: str
    apiVersion: str
    name: str
    versions: list[dict[str, str]]
    preferredVersion: dict[str, str]


class ApiGroupList(TypedDict):
    """The document APIGroupList: all API groups but the core group."""

    kind: str
    apiVersion: str
    groups: list[ApiGroup]


class _ApiResource(TypedDict, total=False):
    name: str
    singularName: str
    namespaced: bool
    kind: str
    verbs: list[str]
    shortNames: list[str]
    categories: list[str]
    group: str
    version: str


class ApiResourceList(TypedDict):
    """The document APIResourceList: the kinds of a group and version, with their subresources."""

    kind: str
    apiVersion: str
    groupVersion: str
    resources: list[_ApiResource]


class _DiscoveredPart(TypedDict):
    subresource: str
    responseKind: dict[str, str]
    verbs: list[str]


class _DiscoveredResource(TypedDict, total=False):
    resource: str
    responseKind: dict[str, str]
    scope: str
    singularResource: str
    verbs: list[str]
    shortNames: list[str]
    categories: list[str]
    subresources: list[_DiscoveredPart]


class _DiscoveredVersion(TypedDict):
    version: str
    freshness: str
    resources: list[_DiscoveredResource]


class _DiscoveredGroup(TypedDict):
    metadata: dict[str, str]
    versions: list[_DiscoveredVersion]


class ApiGroupDiscoveryList(TypedDict):
    """The aggregated document: all groups, versions, kinds and subresources."""

    kind: str
    apiVersion: str
    metadata: dict[str, str]
    items: list[_DiscoveredGroup]


def aggregated_type(version: str) -> str:
    """Return the media type of an aggregated discovery document."""
    return f"application/json;g={_AGGREGATED};v={version};as=APIGroupDiscoveryList"


def negotiated(accept: str) -> str:
    """Return ``v2`` or ``v2beta1`` if the Accept header prefers that aggregated form, otherwise an empty string."""
    for choice in accept.split(","):
        media, *parameters = (part.strip() for part in choice.split(";"))
        requested = {
            name: value for name, _equals, value in (parameter.partition("=") for parameter in parameters)
        }
        version = requested.get("v", "")
        if media != "application/json" or requested.get("g", _AGGREGATED) != _AGGREGATED:
            continue
        if requested.get("as") == "APIGroupDiscoveryList" and version in {"v2", "v2beta1"}:
            return version
        if "as" not in requested:
            return ""
    return ""


def api_versions(server_address: str) -> ApiVersions:
    """Return the APIVersions document of ``/api``; ``server_address`` is the host and port that clients use."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}],
    }


def api_groups(catalogue: Catalogue) -> ApiGroupList:
    """Return the APIGroupList document of ``/apis``."""
    groups = [_group(group) for group in catalogue.groups if group.name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(catalogue: Catalogue, name: str) -> ApiGroup | None:
    """Return the APIGroup document of ``/apis/NAME``, or None if there is no such group."""
    match = next((group for group in catalogue.groups if group.name == name and name), None)
    return None if match is None else {"kind": "APIGroup", "apiVersion": "v1", **_group(match)}


def api_resources(catalogue: Catalogue, name: str, version: str) -> ApiResourceList | None:
    """Return the APIResourceList of ``/api/v1`` or ``/apis/NAME/VERSION``, or None if it is not served."""
    resources = catalogue.in_version(name, version)
    if not resources:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{name}/{version}" if name else version,
        "resources": [item for resource in resources for item in _plain(resource)],
    }


def aggregated(catalogue: Catalogue, *, core: bool, version: str) -> ApiGroupDiscoveryList:
    """Return the aggregated document of ``/api`` (``core``) or ``/apis``, in version v2 or v2beta1."""
    groups = [group for group in catalogue.groups if (not group.name) == core]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"{_AGGREGATED}/{version}",
        "metadata": {},
        "items": [_discovered(group) for group in groups],
    }


def _group(group: Group) -> ApiGroup:
    versions = [
        {"groupVersion": f"{group.name}/{version}", "version": version} for version, _held in group.versions
    ]
    return {"name": group.name, "versions": versions, "preferredVersion": versions[0]}


def _plain(resource: Resource) -> list[_ApiResource]:
    result: _ApiResource = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        result["shortNames"] = list(resource.short_names)
    if resource.categories:
        result["categories"] = list(resource.categories)
    return [result, *(_plain_part(resource, part) for part in resource.subresources)]


def _plain_part(resource: Resource, part: Subresource) -> _ApiResource:
    result: _ApiResource = {
        "name": f"{resource.plural}/{part.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": part.kind,
        "verbs": list(part.verbs),
    }
    if (part.group, part.version) != (resource.group, resource.version):
        result["group"], result["version"] = part.group, part.version
    return result


def _discovered(group: Group) -> _DiscoveredGroup:
    return {
        "metadata": {"name": group.name} if group.name else {},
        "versions": [
            {
                "version": version,
                "freshness": "Current",
                "resources": [_discovered_resource(resource) for resource in resources],
            }
            for version, resources in group.versions
        ],
    }


def _discovered_resource(resource: Resource) -> _DiscoveredResource:
    result: _DiscoveredResource = {
        "resource": resource.plural,
        "responseKind": _kind(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        result["shortNames"] = list(resource.short_names)
    if resource.categories:
        result["categories"] = list(resource.categories)
    if resource.subresources:
        result["subresources"] = [
            {
                "subresource": part.name,
                "responseKind": _kind(part.group, part.version, part.kind),
                "verbs": list(part.verbs),
            }
            for part in resource.subresources
        ]
    return result


def _kind(group: str, version: str, kind: str) -> dict[str, str]:
    return {"group": group, "version": version, "kind": kind}
