"""Catalogue of the kinds that an API serves: names, verbs, subresources, schemas.

A catalogue is immutable; adding custom kinds returns a new one. Groups are in the order of a real API server,
because clients resolve a bare name in the first group that has it: core, built-in groups by priority, then
custom groups by name. The versions of a custom group are in the order of Kubernetes' priority.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from typing import Final

from msgspec import Struct

from engine.kubeapi.schema.schemas import Named, Schema
from events.json_values import Json
from events.validation import kinds_table

ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_VERSION: Final = re.compile(r"v(?P<major>\d{1,18})(?:(?P<stage>alpha|beta)(?P<minor>\d{1,18}))?", re.ASCII)
_STAGES: Final = ("", "beta", "alpha")
"""Stages of versions, the preferred one first; a stable version has none."""

STATUS_VERBS: Final = ("get", "patch", "update")

_OF_NAMESPACES: Final = ("status", "finalize")
_RESOURCE_STEPS: Final = 3
"""Number of path segments that name a resource: plural, name and subresource."""


class ApiPath(Struct, frozen=True, kw_only=True):
    """A parsed path; absent fields are empty. ``part`` is the subresource, ``rest`` the path after it, for proxies."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    part: str = ""
    rest: str = ""


def parse_path(path: str) -> ApiPath | None:
    """Parse ``/api/v1/...`` or ``/apis/GROUP/VERSION/...``; None if the path names no kind."""
    steps = path.strip("/").split("/")
    match steps:
        case ["api", "v1", *below] if below:
            return _resource_path("", "v1", below)
        case ["apis", group, version, *below] if below:
            return _resource_path(group, version, below)
        case _:
            return None


def _resource_path(group: str, version: str, steps: list[str]) -> ApiPath | None:
    namespace = ""
    match steps:
        case ["namespaces", _name]:
            pass
        case ["namespaces", _name, part] if part in _OF_NAMESPACES:
            pass
        case ["namespaces", namespace, *below] if below:
            steps = below
        case _:
            pass
    if not all(steps[:_RESOURCE_STEPS]):
        return None
    plural, name, part = (*steps[:_RESOURCE_STEPS], "", "")[:_RESOURCE_STEPS]
    rest = "/".join(steps[_RESOURCE_STEPS:])
    return ApiPath(
        group=group, version=version, plural=plural, namespace=namespace, name=name, part=part, rest=rest
    )


class Subresource(Struct, frozen=True, kw_only=True):
    """A subresource such as ``status``; group, version and kind are those of its request body."""

    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]


class PrinterColumn(Struct, frozen=True, kw_only=True):
    """A table column of a custom kind; ``type`` is string, integer, number, boolean or date."""

    name: str
    path: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


class ScalePaths(Struct, frozen=True, kw_only=True):
    """JSON paths, such as ``.spec.replicas``, that the scale subresource of a custom kind reads and writes."""

    spec_replicas: str
    status_replicas: str
    label_selector: str = ""


class Resource(Struct, frozen=True, kw_only=True, dict=True):
    """One kind in one version; values that are derived from its names are cached.

    ``columns`` are the printer columns of a custom kind; ``structure`` is the OpenAPI schema of its
    definition, as written. ``deprecation`` is the warning in each response about a deprecated version.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    schema: Schema
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[Subresource, ...] = ()
    custom: bool = False
    columns: tuple[PrinterColumn, ...] = ()
    scale: ScalePaths | None = None
    structure: Json | None = None
    deprecation: str = ""

    @cached_property
    def api_version(self) -> str:
        """The apiVersion: ``v1``, ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @cached_property
    def qualified(self) -> str:
        """The resource name in error messages: ``configmaps``, ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified_kind(self) -> str:
        """The kind in error messages: ``ConfigMap``, ``Deployment.apps``."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @cached_property
    def is_kubernetes_own(self) -> bool:
        """Whether the kind belongs to Kubernetes itself, so that its typing, defaults and validation rules apply."""
        return not self.custom and ("." not in self.group or self.group.endswith(".k8s.io"))

    @cached_property
    def is_event(self) -> bool:
        """Whether the kind is Kubernetes' own Event; a custom kind may have the same name."""
        return self.kind == "Event" and self.is_kubernetes_own

    def subresource(self, name: str) -> Subresource | None:
        """Return the subresource with this name, or None."""
        return next((subresource for subresource in self.subresources if subresource.name == name), None)


class Group(Struct, frozen=True, kw_only=True):
    """An API group with its versions, preferred version first, and the resources of each."""

    name: str
    versions: tuple[tuple[str, tuple[Resource, ...]], ...]


class Catalogue:
    """All resources that one API serves, indexed by path and by kind; immutable."""

    __slots__ = ("_kinds", "_paths", "groups", "resources")

    def __init__(self, resources: Iterable[Resource]) -> None:
        self.resources: Final = tuple(resources)
        self.groups: Final = _groups(self.resources)
        self._paths: Final = {
            (resource.group, resource.version, resource.plural): resource for resource in self.resources
        }
        self._kinds: Final = {(resource.api_version, resource.kind): resource for resource in self.resources}

    def resource(self, group: str, version: str, plural: str) -> Resource | None:
        """Return the resource at a path such as ``/apis/apps/v1/deployments``; the core group's name is empty."""
        return self._paths.get((group, version, plural))

    def in_version(self, group: str, version: str) -> tuple[Resource, ...]:
        """Return the resources of a group and version, in the order of discovery; empty if they are not served."""
        return tuple(
            resource for resource in self.resources if (resource.group, resource.version) == (group, version)
        )

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource with this apiVersion and kind, or None."""
        return self._kinds.get((api_version, kind))

    def with_custom(self, added: Iterable[Resource]) -> "Catalogue":
        """Return a catalogue with these custom kinds added.

        An added kind replaces all versions of an existing custom kind with the same group and plural. Built-in kinds
        are never replaced. A kind is left out if another resource of its group has the same kind name, because objects
        are stored by kind.
        """
        new = [resource for resource in added if not self._is_built_in(resource)]
        names = {(resource.group, resource.plural) for resource in new}
        kept = [
            resource
            for resource in self.resources
            if not (resource.custom and (resource.group, resource.plural) in names)
        ]
        plurals = {(resource.group, resource.kind): resource.plural for resource in kept}
        served = [
            resource
            for resource in new
            if plurals.setdefault((resource.group, resource.kind), resource.plural) == resource.plural
        ]
        return Catalogue((*kept, *served))

    def _is_built_in(self, added: Resource) -> bool:
        return any(
            not resource.custom and (resource.group, resource.plural) == (added.group, added.plural)
            for resource in self.resources
        )


@cache
def built_in() -> Catalogue:
    """Catalogue of a member cluster: the kinds that every Kubernetes cluster serves."""
    return Catalogue(_read(kinds_table.BUILT_IN))


@cache
def control_plane() -> Catalogue:
    """Catalogue of the control plane: the Kubernetes kinds (as templates) and the Karmada groups."""
    return Catalogue((*_read(kinds_table.BUILT_IN), *_read(kinds_table.KARMADA)))


def status_of(group: str, version: str, kind: str) -> Subresource:
    return Subresource(name="status", group=group, version=version, kind=kind, verbs=STATUS_VERBS)


def scale() -> Subresource:
    return Subresource(name="scale", group="autoscaling", version="v1", kind="Scale", verbs=STATUS_VERBS)


def _read(table: str) -> Iterable[Resource]:
    for row in kinds_table.rows(table):
        group, _slash, version = row.api_version.rpartition("/")
        yield Resource(
            group=group,
            version=version,
            kind=row.kind,
            plural=row.plural,
            singular=row.kind.lower(),
            schema=Named(name=f"{row.package}.{row.kind}"),
            namespaced=row.namespaced,
            short_names=row.short_names,
            categories=row.categories,
            verbs=_verbs(row.traits),
            subresources=tuple(_subresources(group, version, row.kind, row.traits)),
        )


def _subresources(group: str, version: str, kind: str, traits: tuple[str, ...]) -> Iterable[Subresource]:
    for trait in traits:
        if trait == "status":
            yield status_of(group, version, kind)
        elif trait == "scale":
            yield scale()
        elif trait in kinds_table.PARTS:
            name = trait.partition(".")[2]
            part_group, part_version, part_kind, verbs = kinds_table.PARTS[trait]
            yield Subresource(name=name, group=part_group, version=part_version, kind=part_kind, verbs=verbs)


def _verbs(traits: tuple[str, ...]) -> tuple[str, ...]:
    if "review" in traits:
        return ("create",)
    if "figures" in traits:
        return ("get", "list")
    return tuple(verb for verb in ALL_VERBS if verb != "deletecollection" or "single" not in traits)


def version_priority(version: str) -> tuple[int, int, int, str]:
    """Return the key that sorts versions as Kubernetes does: v2, v1, v2beta1, v1beta2, v1alpha1, then other names."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return len(_STAGES), 0, 0, version
    return _STAGES.index(match["stage"] or ""), -int(match["major"]), -int(match["minor"] or 0), ""


def _groups(resources: tuple[Resource, ...]) -> tuple[Group, ...]:
    built: dict[str, dict[str, list[Resource]]] = {}
    custom: dict[str, dict[str, list[Resource]]] = {}
    for resource in resources:
        at = custom if resource.custom and resource.group not in built else built
        at.setdefault(resource.group, {}).setdefault(resource.version, []).append(resource)
    # Custom groups and their versions are sorted, so discovery does not depend on the order in which definitions were
    # added.
    by_priority = {
        name: {version: custom[name][version] for version in sorted(custom[name], key=version_priority)}
        for name in sorted(custom)
    }
    ordered: Mapping[str, Mapping[str, list[Resource]]] = {**built, **by_priority}
    return tuple(
        Group(name=name, versions=tuple((version, tuple(kinds)) for version, kinds in versions.items()))
        for name, versions in ordered.items()
    )
