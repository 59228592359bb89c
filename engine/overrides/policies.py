"""Override policies: the templates and clusters that their rules select (policy.karmada.io/v1alpha1).

Only the selection is decoded; overriders stay raw JSON, which ``application`` decodes. Field names on the wire are
Karmada's; unknown fields are ignored.
"""

import hashlib
from typing import Final

import msgspec
from msgspec import Struct

from engine.objects import placements
from engine.objects.policies import PROPAGATION_POLICY, Policy, ResourceSelector, restricted
from events import kube_objects, shapes

OVERRIDE_POLICY: Final = "OverridePolicy"
CLUSTER_OVERRIDE_POLICY: Final = "ClusterOverridePolicy"
KINDS: Final = (OVERRIDE_POLICY, CLUSTER_OVERRIDE_POLICY)

DIGEST_BYTES: Final = 8
"""Size in bytes of the digest with which a work identifies the content of its overrides."""
_EMPTY_BYTES: Final = b"{}"
_EMPTY: Final = msgspec.Raw(_EMPTY_BYTES)


class Metadata(Struct, frozen=True, kw_only=True):
    """Name and namespace; a ClusterOverridePolicy has no namespace."""

    name: str = ""
    namespace: str = ""


class Rule(Struct, frozen=True, kw_only=True, rename="camel"):
    """A rule: the overriders for the clusters that ``target_cluster`` selects; None selects all."""

    target_cluster: placements.ClusterAffinity | None = None
    overriders: msgspec.Raw = _EMPTY

    @property
    def is_empty(self) -> bool:
        """Return whether the rule has no overriders, without copying its JSON."""
        return memoryview(self.overriders).nbytes <= len(_EMPTY_BYTES)


class OverrideSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """The spec of an override policy.

    ``target_cluster`` and ``overriders`` are the only rule if ``override_rules`` is empty.
    """

    resource_selectors: tuple[ResourceSelector, ...] = ()
    override_rules: tuple[Rule, ...] = ()
    target_cluster: placements.ClusterAffinity | None = None
    overriders: msgspec.Raw = _EMPTY


class OverridePolicy(Struct, frozen=True, kw_only=True, rename="camel"):
    """An OverridePolicy or a ClusterOverridePolicy, distinguished by ``kind``."""

    kind: str
    metadata: Metadata = Metadata()
    spec: OverrideSpec = OverrideSpec()

    @property
    def ref(self) -> shapes.PolicyRef:
        return shapes.PolicyRef(kind=self.kind, name=self.metadata.name, namespace=self.metadata.namespace)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rules, in order."""
        spec = self.spec
        return spec.override_rules or (Rule(target_cluster=spec.target_cluster, overriders=spec.overriders),)

    @property
    def selectors(self) -> tuple[ResourceSelector, ...]:
        """The selectors with their namespaces; an empty namespace matches any.

        A policy without selectors selects everything in its scope; it then has one selector without a kind. An
        OverridePolicy's selectors that name a namespace other than its own select nothing; they are left out.
        """
        own = self.metadata.namespace
        if not self.spec.resource_selectors:
            return (ResourceSelector(namespace=own),)
        return restricted(self.spec.resource_selectors, own) if own else self.spec.resource_selectors

    def digest(self, rules: tuple[int, ...]) -> str:
        """Return the digest of the overriders of the rules with these indexes."""
        hasher = hashlib.blake2b(digest_size=DIGEST_BYTES)
        for index in rules:
            raw = bytes(self.rules[index].overriders)
            hasher.update(len(raw).to_bytes(8, "big") + raw)
        return hasher.hexdigest()


def required_overrides(policy: Policy) -> tuple[shapes.PolicyRef, ...]:
    """Return the override policies that must exist before a policy is applied (``spec.dependentOverrides``)."""
    kind = OVERRIDE_POLICY if policy.kind == PROPAGATION_POLICY else CLUSTER_OVERRIDE_POLICY
    return tuple(
        shapes.PolicyRef(kind=kind, name=name, namespace=policy.metadata.namespace)
        for name in policy.spec.dependent_overrides
    )


_DECODER: Final = msgspec.json.Decoder(OverridePolicy)


def decode(manifest: msgspec.Raw | bytes) -> OverridePolicy:
    """Decode a manifest; raises msgspec.ValidationError or msgspec.DecodeError if it is invalid."""
    return with_own_buffers(kube_objects.decoded(_DECODER.decode, manifest))


def with_own_buffers(policy: OverridePolicy) -> OverridePolicy:
    """Return the policy with its own copies of raw JSON.

    Raw values keep the whole buffer alive from which they were decoded.
    """
    replace, spec = msgspec.structs.replace, policy.spec
    rules = tuple(replace(rule, overriders=rule.overriders.copy()) for rule in spec.override_rules)
    return replace(policy, spec=replace(spec, override_rules=rules, overriders=spec.overriders.copy()))
