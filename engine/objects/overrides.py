"""Override policies: which templates, in which clusters, become what (policy.karmada.io/v1alpha1).

Here is what decides whether a rule holds. What it says (its overriders) is kept as it was written, for whoever
applies it. Field names on the wire are Karmada's; unknown fields are ignored.
"""

import hashlib
from typing import Final

import msgspec
from msgspec import Struct

from engine.objects import placements
from engine.objects.policies import ResourceSelector

API_VERSION: Final = "policy.karmada.io/v1alpha1"
OVERRIDE_POLICY: Final = "OverridePolicy"
CLUSTER_OVERRIDE_POLICY: Final = "ClusterOverridePolicy"
KINDS: Final = (OVERRIDE_POLICY, CLUSTER_OVERRIDE_POLICY)

_DIGEST_BYTES: Final = 8
_NOTHING_SAID: Final = b"{}"
_NOTHING: Final = msgspec.Raw(_NOTHING_SAID)


class Metadata(Struct, frozen=True, kw_only=True):
    """Name and namespace; the namespace of a ClusterOverridePolicy is empty."""

    name: str = ""
    namespace: str = ""


class Rule(Struct, frozen=True, kw_only=True, rename="camel"):
    """What holds in the clusters that ``target_cluster`` means; None means all."""

    target_cluster: placements.ClusterAffinity | None = None
    overriders: msgspec.Raw = _NOTHING

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing; its text is not copied to find out."""
        return memoryview(self.overriders).nbytes <= len(_NOTHING_SAID)


class OverrideSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """``target_cluster`` and ``overriders`` are one rule, and count where there is no list of rules."""

    resource_selectors: tuple[ResourceSelector, ...] = ()
    override_rules: tuple[Rule, ...] = ()
    target_cluster: placements.ClusterAffinity | None = None
    overriders: msgspec.Raw = _NOTHING


class OverridePolicy(Struct, frozen=True, kw_only=True, rename="camel"):
    """An OverridePolicy or a ClusterOverridePolicy, told apart by ``kind``."""

    kind: str
    metadata: Metadata = Metadata()
    spec: OverrideSpec = OverrideSpec()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """All rules, in order."""
        spec = self.spec
        return spec.override_rules or (Rule(target_cluster=spec.target_cluster, overriders=spec.overriders),)

    @property
    def selectors(self) -> tuple[ResourceSelector, ...]:
        """What it selects, each with its namespace, which is empty for any.

        Without selectors it means all in its scope: a selector without kind. A selector of an OverridePolicy that
        names another namespace than its own means nothing.
        """
        own = self.metadata.namespace
        if not self.spec.resource_selectors:
            return (ResourceSelector(namespace=own),)
        if not own:
            return self.spec.resource_selectors
        return tuple(
            msgspec.structs.replace(selector, namespace=own)
            for selector in self.spec.resource_selectors
            if selector.namespace in {"", own}
        )

    def digest(self, rules: tuple[int, ...]) -> str:
        """What tells the overriders of some of its rules from others."""
        whole = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        for place in rules:
            raw = bytes(self.rules[place].overriders)
            whole.update(len(raw).to_bytes(8, "big") + raw)
        return whole.hexdigest()


_DECODER: Final = msgspec.json.Decoder(OverridePolicy)


def decode(manifest: msgspec.Raw | bytes) -> OverridePolicy:
    """The policy in a manifest; raises msgspec.ValidationError or msgspec.DecodeError for another shape."""
    return copied(_DECODER.decode(manifest))


def copied(policy: OverridePolicy) -> OverridePolicy:
    """The policy in bytes of its own: what it was read from would stay alive as long as it."""
    replace, spec = msgspec.structs.replace, policy.spec
    rules = tuple(replace(rule, overriders=rule.overriders.copy()) for rule in spec.override_rules)
    return replace(policy, spec=replace(spec, override_rules=rules, overriders=spec.overriders.copy()))
