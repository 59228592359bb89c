"""Bootstrap objects: namespaces and their built-in contents, ``cluster-info``, and Kubernetes' default roles.

They are not in the log; their age is that of the log or of their namespace. A stored object with the same name
replaces them.
"""

import contextlib
import heapq
import itertools
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Final

from engine.domain import marks, namespaces
from engine.identity import kubeconfig
from engine.kubeapi.rights import bootstrap_roles, bootstrap_tokens, parsing
from engine.kubeapi.schema.resources import Resource
from engine.log.port import LogCutError
from engine.objects import dependencies
from engine.writing.read_side import ReadSide
from events import attributes, ids, times
from events.json_values import Json
from events.kube_fields import ObjectMeta
from events.kube_objects import KubeObject
from events.validation import known_kinds
from projections import clusters, object_tables
from projections.documents.works import cluster_of
from projections.port import Rows

NAMESPACE: Final = object_tables.Kind("v1", "Namespace")
ACCOUNT: Final = object_tables.Kind("v1", "ServiceAccount")
CONFIG_MAP: Final = object_tables.Kind("v1", "ConfigMap")
CLUSTER: Final = object_tables.Kind(known_kinds.CLUSTER_GROUP, "Cluster")
_SECRET: Final = object_tables.Kind("v1", "Secret")
OF_NAMESPACES: Final = (ACCOUNT, CONFIG_MAP)
"""Kinds of which every namespace contains one object."""

SOURCES: Final[dict[object_tables.Kind, tuple[object_tables.Kind, ...]]] = {
    NAMESPACE: (CLUSTER,),
    ACCOUNT: (NAMESPACE, CLUSTER),
    CONFIG_MAP: (NAMESPACE, CLUSTER),
}
"""Source kinds by kind: a bootstrap object of the kind is created and deleted with an object of a source kind."""

ROOT_AUTHORITY: Final = "kube-root-ca.crt"
_PUBLIC: Final = "kube-public"
_CLUSTER_INFO: Final = "cluster-info"
CLUSTER_INFO_PATH: Final = f"/api/v1/namespaces/{_PUBLIC}/configmaps/{_CLUSTER_INFO}"
"""Path of the ConfigMap ``cluster-info``, which clients may read without credentials."""

_SOURCE: Final = "/reballast/given"
NAMES: Final[dict[object_tables.Kind, str]] = {
    ACCOUNT: dependencies.DEFAULT_ACCOUNT,
    CONFIG_MAP: ROOT_AUTHORITY,
}
"""Name of the object that every namespace contains, by kind."""


def _roles() -> dict[tuple[str, str, str], KubeObject]:
    """The default roles by kind, namespace and name, in this order.

    Aggregated roles include the rules of all selected roles.
    """
    values = bootstrap_roles.objects()
    known = parsing.rights(values)
    roles: dict[tuple[str, str, str], KubeObject] = {}
    for value in values:
        if value.at("aggregationRule") is None:
            roles[value.kind, *value.key] = value
        else:
            rules = [parsing.shown(rule) for rule in known.rules(value.name, "") or ()]
            roles[value.kind, *value.key] = value.with_fields({"rules": rules})
    return dict(sorted(roles.items()))


_ROLES: Final = _roles()
KINDS: Final = frozenset(
    {
        NAMESPACE,
        *OF_NAMESPACES,
        *(object_tables.Kind(role.api_version, role.kind) for role in _ROLES.values()),
    }
)
"""Kinds that have bootstrap objects."""


class BootstrapObjects:
    """Read bootstrap objects.

    ``url`` is the address of the API; ``authority`` is the CA certificate (PEM) of the servers, empty for none.
    """

    def __init__(self, reads: ReadSide, url: str, authority: bytes, clock_ms: Callable[[], int]) -> None:
        self._reads = reads
        self._url = url
        self._clock_ms = clock_ms
        self._authority = authority.decode()
        self._began = ""

    async def get(self, resource: Resource, namespace: str, name: str) -> KubeObject | None:
        """One bootstrap object, even if a stored object replaces it; None if there is none."""
        kind = object_tables.Kind(resource.api_version, resource.kind)
        if kind in OF_NAMESPACES and name not in {NAMES[kind], _CLUSTER_INFO}:
            return None
        await self.prepare()

        def named(rows: Rows) -> KubeObject | None:
            listed = self.listed(rows, resource, namespace, name=name)
            return next((item for item in listed if item.name == name), None)

        return await self._reads.peek(named)

    def listed(
        self, rows: Rows, resource: Resource, namespace: str, *, start: str = "", name: str = ""
    ) -> Iterator[KubeObject]:
        """Yield the bootstrap objects of a kind by namespace and name, in one namespace or all.

        Objects in namespaces before ``start`` or with names other than ``name`` may be missing. Call ``prepare`` first.
        """
        kind = object_tables.Kind(resource.api_version, resource.kind)
        if kind == NAMESPACE:
            return map(self._namespace_of, _derived_namespaces(rows, name))
        if kind in OF_NAMESPACES:
            return self._of_namespaces(rows, kind, namespace, start) if self.has(kind) else iter(())
        return (
            self._role(role)
            for (role_kind, role_namespace, _name), role in _ROLES.items()
            if role_kind == resource.kind and namespace in {"", role_namespace}
        )

    def has(self, kind: object_tables.Kind) -> bool:
        """Whether every namespace contains an object of this kind.

        Without a CA certificate namespaces have no ConfigMap.
        """
        return kind == ACCOUNT or (kind == CONFIG_MAP and bool(self._authority))

    async def prepare(self) -> None:
        """Read the time of the log's first record, which ``derived`` needs."""
        if not self._began:
            # The first record may have been deleted; then the creation time is unknown.
            with contextlib.suppress(LogCutError):
                first = await self._reads.log.read_all(0, 1)
                self._began = attributes.get(first[0], "time") if first else ""

    def derived(self, kind: object_tables.Kind, source: KubeObject) -> KubeObject:
        """The object of this kind that is created and deleted with ``source``, a namespace or a cluster."""
        if source.kind != CLUSTER.kind:
            return self.of_namespace(kind, source)
        namespace = self._namespace_of(marks.work_namespace(source.name))
        return namespace if kind == NAMESPACE else self.of_namespace(kind, namespace)

    def of_namespace(self, kind: object_tables.Kind, namespace: KubeObject) -> KubeObject:
        """The object of this kind that the namespace contains, with the resourceVersion of the namespace."""
        value = object_of_namespace(kind, namespace, self._authority)
        return value.with_metadata({"resourceVersion": namespace.resource_version or "1"})

    def _of_namespaces(
        self, rows: Rows, kind: object_tables.Kind, namespace: str, start: str
    ) -> Iterator[KubeObject]:
        for value in self._namespaces(rows, namespace, start):
            # Objects are ordered by name, so ``cluster-info`` precedes the other ConfigMap.
            if kind == CONFIG_MAP and value.name == _PUBLIC:
                yield self._cluster_info(rows)
            yield self.of_namespace(kind, value)

    def _namespaces(self, rows: Rows, name: str, start: str) -> Iterator[KubeObject]:
        """Yield the namespaces from ``start`` on by name, or only ``name``; a stored one replaces a derived one."""
        selection = object_tables.Selection(kind=NAMESPACE, name=name)
        stored = ((item.name, item) for item in object_tables.following(rows, selection, start))
        derived = ((item, None) for item in _derived_namespaces(rows, name) if item >= start)
        # The merge is stable: of two equal names the stored one is first.
        merged = heapq.merge(stored, derived, key=itemgetter(0))
        for item_name, items in itertools.groupby(merged, key=itemgetter(0)):
            yield next(items)[1] or self._namespace_of(item_name)

    def _cluster_info(self, rows: Rows) -> KubeObject:
        """The ConfigMap from which joining clusters read the API's address and CA certificate.

        It is signed with each bootstrap token that is valid for signing.
        """
        content = kubeconfig.of_server(self._url, self._authority.encode())
        tokens = _bootstrap_tokens(rows)
        signatures = (bootstrap_tokens.signature(token, content, self._clock_ms()) for token in tokens)
        signed = {
            f"jws-kubeconfig-{signature[0]}": signature[1]
            for signature in signatures
            if signature is not None
        }
        identity = self._identity_of(f"{_PUBLIC}/{_CLUSTER_INFO}")
        return KubeObject(
            {
                "apiVersion": CONFIG_MAP.api_version,
                "kind": CONFIG_MAP.kind,
                "metadata": {"name": _CLUSTER_INFO, "namespace": _PUBLIC, **identity},
                "data": {"kubeconfig": content, **signed},
            }
        )

    def _role(self, role: KubeObject) -> KubeObject:
        # Derive the uid also from the kind: a ClusterRole and its binding have the same name, but need different uids.
        return role.with_metadata(self._identity_of(f"{role.kind}/{role.namespace}/{role.name}"))

    def _namespace_of(self, name: str) -> KubeObject:
        labels = {"kubernetes.io/metadata.name": name}
        identity = self._identity_of(name)
        metadata: Json = {"name": name, **identity, "generation": 1, "labels": labels}
        return namespaces.shown(KubeObject({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}))

    def _identity_of(self, name: str) -> ObjectMeta:
        """Derived metadata: a stable uid, and the time of the log's first record as the creation time."""
        metadata: ObjectMeta = {"uid": ids.object_uid(_SOURCE, name, name), "resourceVersion": "1"}
        # The first record may be of another producer, and its time may be unreadable.
        with contextlib.suppress(ValueError):
            metadata["creationTimestamp"] = times.to_seconds_text(times.from_text(self._began))
        return metadata


def object_of_namespace(kind: object_tables.Kind, namespace: KubeObject, authority: str) -> KubeObject:
    """Return the object of this kind that a namespace contains, without a resourceVersion.

    It has the same form in the control plane and in members.
    """
    metadata: Json = {
        "name": NAMES[kind],
        "namespace": namespace.name,
        "uid": ids.object_uid(_SOURCE, namespace.uid, NAMES[kind]),
    }
    if "creationTimestamp" in namespace.metadata:
        metadata["creationTimestamp"] = namespace.metadata["creationTimestamp"]
    head: Json = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
    if kind == ACCOUNT:
        return KubeObject(head)
    metadata["annotations"] = {
        "kubernetes.io/description": "CA certificate by which clients verify the servers of this API."
    }
    return KubeObject({**head, "data": {"ca.crt": authority}})


def _bootstrap_tokens(rows: Rows) -> list[KubeObject]:
    secrets = object_tables.Selection(kind=_SECRET, namespace=bootstrap_tokens.NAMESPACE)
    stored = object_tables.page(rows, secrets).items
    return [secret for secret in stored if secret.at("type") == bootstrap_tokens.SECRET_TYPE]


def _derived_namespaces(rows: Rows, name: str) -> list[str]:
    """Return the names of the namespaces that exist without a stored object, in order; with ``name`` only this one."""
    names = [] if name else clusters.names(rows)
    member = cluster_of(name)
    if member is not None and object_tables.get(rows, CLUSTER, "", member) is not None:
        names.append(member)
    known = {*namespaces.BUILT_IN, *map(marks.work_namespace, names)}
    return sorted(known & {name} if name else known)
