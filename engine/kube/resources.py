"""The kinds that an API serves: names, verbs, subresources, schemas; one immutable value, to which custom kinds add.

The order is that of a real server's groups, since clients take the first group that has a bare name: core, the
built-in groups by their importance, then custom ones by name.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from msgspec import Struct

from engine.kube import kinds_table
from engine.kube.schemas import Json, Named, Schema

ALL_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS: Final = ("get", "patch", "update")
SCALE_KIND: Final = ("autoscaling", "v1", "Scale")


class Subresource(Struct, frozen=True, kw_only=True):
    """A part of an object with a path of its own; group, version and kind are those of its body."""

    name: str
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]


class PrinterColumn(Struct, frozen=True, kw_only=True):
    """A column of a custom kind's table: ``type`` is string, integer, number, boolean or date."""

    name: str
    path: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


class ScalePaths(Struct, frozen=True, kw_only=True):
    """Where a custom kind keeps what its scale subresource shows; paths such as ``.spec.replicas``."""

    spec_replicas: str
    status_replicas: str
    label_selector: str = ""


class Resource(Struct, frozen=True, kw_only=True):
    """One kind in one version.

    ``columns`` is for custom kinds that declare some; ``structure`` is the schema of their definition, as written.
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

    @property
    def api_version(self) -> str:
        """``v1``, ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """The name that errors use: ``configmaps``, ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def is_kubernetes_own(self) -> bool:
        """Whether the kind is one of Kubernetes itself: typed, with the defaults and the rules of its API."""
        return not self.custom and ("." not in self.group or self.group.endswith(".k8s.io"))

    def subresource(self, name: str) -> Subresource | None:
        """The part with this name."""
        return next((each for each in self.subresources if each.name == name), None)


class Group(Struct, frozen=True, kw_only=True):
    """A group's versions, the preferred one first, each with its resources."""

    name: str
    versions: tuple[tuple[str, tuple[Resource, ...]], ...]


class Catalogue:
    """All resources that one API serves; looked up by path and by kind, and never changed."""

    __slots__ = ("_kinds", "_paths", "groups", "resources")

    def __init__(self, resources: Iterable[Resource]) -> None:
        self.resources: Final = tuple(resources)
        self.groups: Final = _groups(self.resources)
        self._paths: Final = {(each.group, each.version, each.plural): each for each in self.resources}
        self._kinds: Final = {(each.api_version, each.kind): each for each in self.resources}

    def resource(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource at a path such as ``/apis/apps/v1/deployments``; the core group's name is empty."""
        return self._paths.get((group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """The resource whose objects have this apiVersion and kind."""
        return self._kinds.get((api_version, kind))

    def with_custom(self, added: Iterable[Resource]) -> "Catalogue":
        """The catalogue with further custom kinds, which replace all versions of those with the same names.

        Built-in kinds stay as they are.
        """
        new = [each for each in added if not self._is_built_in(each)]
        names = {(each.group, each.plural) for each in new}
        kept = [each for each in self.resources if not (each.custom and (each.group, each.plural) in names)]
        return Catalogue((*kept, *new))

    def without_custom(self, group: str, plural: str) -> "Catalogue":
        """The catalogue less all versions of a custom kind."""
        return Catalogue(
            each
            for each in self.resources
            if not (each.custom and (each.group, each.plural) == (group, plural))
        )

    def _is_built_in(self, wanted: Resource) -> bool:
        return any(
            not each.custom and (each.group, each.plural) == (wanted.group, wanted.plural)
            for each in self.resources
        )


@cache
def built_in() -> Catalogue:
    """What any Kubernetes cluster serves: the API of a member."""
    return Catalogue(_read(kinds_table.BUILT_IN))


@cache
def control_plane() -> Catalogue:
    """What the control plane serves: Kubernetes' kinds, as templates, and the karmada groups."""
    return Catalogue((*_read(kinds_table.BUILT_IN), *_read(kinds_table.KARMADA)))


def status_of(group: str, version: str, kind: str) -> Subresource:
    """The status subresource of a kind."""
    return Subresource(name="status", group=group, version=version, kind=kind, verbs=STATUS_VERBS)


def scale() -> Subresource:
    """The scale subresource."""
    group, version, kind = SCALE_KIND
    return Subresource(name="scale", group=group, version=version, kind=kind, verbs=STATUS_VERBS)


def _read(table: str) -> Iterable[Resource]:
    group = version = package = ""
    for line in table.strip().splitlines():
        if line.startswith("group "):
            _word, api_version, package = line.split()
            group, _slash, version = api_version.rpartition("/")
            continue
        plural, kind, short, categories, traits = line.split()
        yield _resource(
            group, version, package, (plural, kind), _words(short), _words(categories), _words(traits)
        )


def _words(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split(","))


def _resource(
    group: str,
    version: str,
    package: str,
    names: tuple[str, str],
    short_names: tuple[str, ...],
    categories: tuple[str, ...],
    traits: tuple[str, ...],
) -> Resource:
    plural, kind = names
    found: list[Subresource] = []
    for trait in traits:
        if trait == "status":
            found.append(status_of(group, version, kind))
        elif trait == "scale":
            found.append(scale())
        elif trait in kinds_table.PARTS:
            part_group, part_version, part_kind, verbs = kinds_table.PARTS[trait]
            found.append(
                Subresource(
                    name=trait.partition(".")[2],
                    group=part_group,
                    version=part_version,
                    kind=part_kind,
                    verbs=verbs,
                )
            )
    return Resource(
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        singular=kind.lower(),
        schema=Named(name=f"{package}.{kind}"),
        namespaced="global" not in traits,
        short_names=short_names,
        categories=categories,
        verbs=_verbs(traits),
        subresources=tuple(found),
    )


def _verbs(traits: tuple[str, ...]) -> tuple[str, ...]:
    if "review" in traits:
        return ("create",)
    if "figures" in traits:
        return ("get", "list")
    return tuple(verb for verb in ALL_VERBS if verb != "deletecollection" or "single" not in traits)


def _groups(resources: tuple[Resource, ...]) -> tuple[Group, ...]:
    built: dict[str, dict[str, list[Resource]]] = {}
    custom: dict[str, dict[str, list[Resource]]] = {}
    for each in resources:
        at = custom if each.custom and each.group not in built else built
        at.setdefault(each.group, {}).setdefault(each.version, []).append(each)
    ordered: Mapping[str, Mapping[str, list[Resource]]] = {**built, **dict(sorted(custom.items()))}
    return tuple(
        Group(name=name, versions=tuple((version, tuple(held)) for version, held in versions.items()))
        for name, versions in ordered.items()
    )
