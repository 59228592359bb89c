"""Derived fields of rendered objects, which are never stored.

Objects of built-in kinds get the API's defaults, Services a cluster IP, Jobs a selector, Works the manifests that
result from override policies, CustomResourceDefinitions an Established status, custom resources their default status,
and token Secrets a signed token. Objects on which no controller acts get a condition that says so.
"""

import base64
from itertools import chain
from operator import attrgetter
from typing import Final

import msgspec
from msgspec import Struct

from engine.domain import marks
from engine.karmada import unsupported
from engine.kubeapi.admission import built_in_shapes
from engine.kubeapi.admission.rules.core import ACCOUNT_NAME
from engine.kubeapi.conversion import versions
from engine.kubeapi.rights import service_tokens
from engine.kubeapi.schema import custom_kinds
from engine.kubeapi.schema.resources import Resource
from engine.kubeapi.values import cluster_ips, job_selectors
from engine.overrides import application
from events.json_values import as_list, object_at
from events.kube_objects import KubeObject
from projections.documents import works

TOKEN_SECRET: Final = "kubernetes.io/service-account-token"  # noqa: S105  # a type of Secret, no token
MEMBERS_NAMESPACE: Final = "karmada-cluster"
"""Namespace of the Secrets that give access to members."""

MEMBER: Final = "reballast.io/member"
"""Annotation with the name of a Cluster, on the Secret that gives access to this member."""

MEMBER_UID: Final = "reballast.io/member-uid"
"""Annotation with the uid of a Cluster, on the Secret that gives access to this member."""


class DerivedFields:
    """Render objects with their derived fields.

    ``token`` is the server's own; the key that signs tokens is derived from it. ``authority`` is the server's CA
    certificate (PEM).
    """

    def __init__(self, token: str, authority: bytes) -> None:
        self.key = service_tokens.key_of(token)
        self.authority = authority

    def __call__(self, resource: Resource, value: KubeObject) -> KubeObject:
        """The object with its derived fields, in the API version of ``resource``."""
        kept = versions.stored(resource)
        if kept is not resource:
            return versions.to_served(
                resource, self(kept, value.with_fields({"apiVersion": kept.api_version}))
            )
        value = built_in_shapes.shown(value)
        match resource.qualified:
            case custom_kinds.DEFINITIONS:
                return custom_kinds.established(value)
            case "secrets" if value.at("type") == TOKEN_SECRET:
                return self.with_token(value)
            # Secrets in other namespaces get no member token: clients that write there may have no rights in members.
            case "secrets" if MEMBER in value.annotations and value.namespace == MEMBERS_NAMESPACE:
                return self._with_member_token(value)
            case "services":
                return cluster_ips.with_cluster_ip(value)
            case "jobs.batch":
                return job_selectors.shown(value)
            case "works.work.karmada.io":
                return _overridden(value)
            case _:
                return unsupported.with_condition(_with_default_status(resource, value))

    def _with_member_token(self, value: KubeObject) -> KubeObject:
        texts = value.annotations
        member, uid = str(texts[MEMBER]), str(texts.get(MEMBER_UID, ""))
        claims = service_tokens.Claims(sub=f"system:member:{member}", uid=uid, member=member)
        token = base64.b64encode(service_tokens.signed(claims, self.key).encode()).decode()
        return value.with_fields({"data": {**value.object_at("data"), "token": token}})

    def with_token(self, value: KubeObject, member: str = "") -> KubeObject:
        """Return the Secret with a token for the service account that it names.

        The account belongs to ``member``, or to the control plane if ``member`` is empty.
        """
        account = value.annotations.get(ACCOUNT_NAME)
        if not isinstance(account, str) or not account:
            return value
        namespace = value.namespace
        claims = service_tokens.Claims(
            sub=f"system:serviceaccount:{namespace}:{account}",
            namespace=namespace,
            account=account,
            member=member,
            bound_kind="Secret",
            bound_name=value.name,
            bound_uid=value.uid,
        )
        token = service_tokens.signed(claims, self.key).encode()
        parts = {"ca.crt": self.authority, "namespace": namespace.encode(), "token": token}
        data = {name: base64.b64encode(part).decode() for name, part in parts.items()}
        return value.with_fields({"data": {**value.object_at("data"), **data}})


def _with_default_status(resource: Resource, value: KubeObject) -> KubeObject:
    """The object; if it has no status, with the default status of its CustomResourceDefinition."""
    if resource.structure is None or value.at("status") is not None:
        return value
    default = object_at(resource.structure, "properties", "status").get("default")
    return value if default is None else value.with_fields({"status": default})


class _Applied(Struct, frozen=True, rename="camel"):
    policy_name: str
    overriders: msgspec.Raw


_APPLIED: Final = msgspec.json.Decoder(list[_Applied])


def _overridden(work: KubeObject) -> KubeObject:
    """The Work with the overrides in its annotations applied to its manifest; the annotations are sorted by policy.

    If an override fails, the manifest is unchanged, and the Work's condition shows the reason.
    """
    texts = work.annotations
    applied = {name: _APPLIED.decode(str(texts[name])) for name in works.APPLIED.values() if name in texts}
    if not applied:
        return work
    for name, overrides in applied.items():
        by_name = sorted(overrides, key=attrgetter("policy_name"))
        texts = {**texts, name: msgspec.json.encode(by_name).decode()}
    work = work.with_metadata({"annotations": texts})
    spec = work.object_at("spec")
    workload = object_at(spec, "workload")
    (manifest,) = (KubeObject(object_at(item)) for item in as_list(workload.get("manifests")) or [{}])
    under = application.OverrideApplication(manifest)
    try:
        for entry in chain.from_iterable(applied.values()):
            under.apply(application.read(entry.overriders))
    except application.OverrideError:
        return work
    changed = marks.restored(under.value, manifest)
    return work.with_fields({"spec": {**spec, "workload": {**workload, "manifests": [changed.document]}}})
