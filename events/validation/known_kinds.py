"""The kinds that the engine stores or derives, read from ``kinds_table``, and the route of an object of any kind.

A kind is identified by apiVersion and kind. A kind without route is a template and is propagated unchanged; but in
the control plane's own API groups such kinds are refused, not stored without effect.
"""

from typing import Final
from urllib.parse import quote

from msgspec import Struct

from events import keys, shapes
from events.validation import kinds_table

POLICY_GROUP: Final = "policy.karmada.io/v1alpha1"
APPS_GROUP: Final = "apps.karmada.io/v1alpha1"
CLUSTER_GROUP: Final = "cluster.karmada.io/v1alpha1"
WORK_GROUP: Final = "work.karmada.io/v1alpha2"
CONFIG_GROUP: Final = "config.reballast.io/v1alpha1"
AUTOSCALING_GROUP: Final = "autoscaling.karmada.io/v1alpha1"
NETWORKING_GROUP: Final = "networking.karmada.io/v1alpha1"
INTERPRETERS_GROUP: Final = "config.karmada.io/v1alpha1"
REMEDY_GROUP: Final = "remedy.karmada.io/v1alpha1"
SEARCH_GROUP: Final = "search.karmada.io/v1alpha1"


class Kind(Struct, frozen=True, kw_only=True):
    """A kind: its names in kubectl, whether its objects are namespaced, and its route.

    The route selects the topic and the event type of an object's writes.
    """

    api_version: str
    kind: str
    plural: str
    short: tuple[str, ...] = ()
    namespaced: bool = True
    route: shapes.Route = "template"

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return keys.group_of(self.api_version)

    @property
    def resource(self) -> str:
        """The resource name that kubectl prints: ``deployment.apps``, ``configmap``."""
        return keys.resource_name(self.api_version, self.kind)

    def path(self, namespace: str = "", name: str = "") -> str:
        """The URL path of all objects of this kind, of those in a namespace, or of one object."""
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        namespace_path = f"/namespaces/{quote(namespace, safe='')}" if self.namespaced and namespace else ""
        return f"{root}{namespace_path}/{self.plural}" + (f"/{quote(name, safe='')}" if name else "")


_COMMAND_NAMES: Final = {"WorkloadRebalancer": ("wr",)}
"""Short names, by kind, that only the command line knows; Karmada's API does not serve them."""


def _kind(row: kinds_table.Row) -> Kind:
    return Kind(
        api_version=row.api_version,
        kind=row.kind,
        plural=row.plural,
        short=_COMMAND_NAMES.get(row.kind, row.short_names),
        namespaced=row.namespaced,
        route=row.route or "template",
    )


_ROWS: Final = (*kinds_table.rows(kinds_table.BUILT_IN), *kinds_table.rows(kinds_table.KARMADA))
KINDS: Final = tuple(_kind(row) for row in _ROWS if row.route)
DERIVED: Final = tuple(_kind(row) for row in _ROWS if "derived" in row.traits)
"""Kinds whose objects the engine derives from the log; clients cannot write them."""

_BY_NAME: Final = {(kind.api_version, kind.kind): kind for kind in KINDS}
CLUSTER: Final = _BY_NAME[CLUSTER_GROUP, "Cluster"]
REBALANCER: Final = _BY_NAME[APPS_GROUP, "WorkloadRebalancer"]
_OWN_GROUPS: Final = {
    kind.group for kind in (*KINDS, *DERIVED) if kind.group.endswith((".karmada.io", ".reballast.io"))
}
"""API groups of the control plane. Users may have other groups that end with the same domains."""


def of(api_version: str, kind: str) -> Kind | None:
    return _BY_NAME.get((api_version, kind))


def route_of(api_version: str, kind: str) -> shapes.Route:
    """Return the route of an object of this kind; kinds without route are templates."""
    known_kind = _BY_NAME.get((api_version, kind))
    return known_kind.route if known_kind else "template"


def record_key(route: shapes.Route, kind: str, namespace: str, name: str) -> str:
    """Return the key of the records about an object, by the route of its kind."""
    match route:
        case "template":
            return keys.binding_key(kind, namespace, name)
        case "rebalancer":
            return keys.rebalancer_key(name)
        case "cluster":
            return name
        case _:
            return keys.object_key(kind, namespace, name)


def plural_of(api_version: str, kind: str) -> str:
    """Return the plural name of a kind; for an unknown kind, form it by Kubernetes' rule for English words."""
    known_kind = _BY_NAME.get((api_version, kind))
    if known_kind is not None:
        return known_kind.plural
    name = kind.lower()
    if name.endswith("endpoints"):
        return name
    if name.endswith("y"):
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith("s") else f"{name}s"


def refused(api_version: str, kind: str) -> str:
    """Return the reason why objects of this kind cannot be written; empty if they can."""
    if (api_version, kind) in _BY_NAME:
        return ""
    group = api_version.partition("/")[0]
    if any(kind == derived.kind and group == derived.group for derived in DERIVED):
        return f"a {kind} is made by the engine; write a template and a policy instead"
    if group not in _OWN_GROUPS:
        return ""
    versions = [entry.api_version for entry in KINDS if entry.kind == kind and entry.group == group]
    if versions:
        return f"{kind} is known as {versions[0]}, not as {api_version}"
    return f"this control plane has no {kind} of {api_version}"


def find(word: str) -> Kind | None:
    """Return the kind with this kind name, plural, short name or ``plural.group``, in any letter case."""
    name, _dot, group = word.lower().partition(".")
    for kind in (*KINDS, *DERIVED):
        if name in {kind.kind.lower(), kind.plural, *kind.short} and group in {"", kind.group}:
            return kind
    return None
