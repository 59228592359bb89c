"""Changed policies for an audit, and a reader that returns a log as if these policies had been written."""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct, structs

from engine.deciders import propagation
from engine.deciders.facts import KnownPolicy
from engine.karmada import default_tolerations
from engine.karmada.default_tolerations import TolerationSeconds
from engine.log import port, reading
from engine.objects import policies as policy_objects
from engine.overrides import policies as override_policies
from events import attributes, catalogue, codec, decisions, policies, records, shapes, topics
from events.json_values import DECODING_ERRORS, Json
from events.kube_objects import KubeObject
from events.records import StoredRecord
from events.shapes import PolicyRef

_POLICY: Final = msgspec.json.Decoder(policy_objects.Policy)


class Rules(Struct, frozen=True, kw_only=True):
    """Changes of policies: ``specs`` has new specs of propagation policies; default values must be set in them.

    ``tolerated`` is added as tolerations to all propagation policies. ``overrides`` has new specs of override policies,
    which affect only manifests.
    """

    specs: Mapping[PolicyRef, Json] = {}
    overrides: Mapping[PolicyRef, Json] = {}
    tolerated: TolerationSeconds = TolerationSeconds()

    @property
    def are_unchanged(self) -> bool:
        """Whether no policy is changed."""
        return self == UNCHANGED

    def manifest(self, ref: PolicyRef, manifest: msgspec.Raw) -> msgspec.Raw:
        """Return the manifest of a policy with the changes of these rules."""
        value = KubeObject.from_json(manifest)
        named = value.with_fields({"spec": self.specs.get(ref, value.object_at("spec"))})
        changed = default_tolerations.with_tolerations(named, self.tolerated)
        return manifest if changed == value else changed.raw

    def override(self, policy: override_policies.OverridePolicy) -> override_policies.OverridePolicy:
        """Return an override policy with the changes of these rules."""
        ref = policy.ref
        if ref not in self.overrides:
            return policy
        head = {"name": ref.name, "namespace": ref.namespace}
        value: Json = {"kind": ref.kind, "metadata": head, "spec": self.overrides[ref]}
        return override_policies.decode(msgspec.json.encode(value))

    def claim(self, claim: decisions.BindingClaimed) -> decisions.BindingClaimed:
        """Return a recorded claim with the placement and other values that follow from the changed policies."""
        if claim.policy in self.specs:
            head = {"name": claim.policy.name, "namespace": claim.policy.namespace}
            value: Json = {"kind": claim.policy.kind, "metadata": head, "spec": self.specs[claim.policy]}
            policy = _POLICY.decode(self.manifest(claim.policy, msgspec.Raw(msgspec.json.encode(value))))
            known = KnownPolicy(policy, claim.version, claim.permanent_id)
            return propagation.claimed(claim.key, known, claim.preempted)
        placed = KubeObject({"spec": {"placement": msgspec.json.decode(claim.placement)}})
        changed = default_tolerations.with_tolerations(placed, self.tolerated)
        if changed == placed:
            return claim
        placement = msgspec.json.encode(changed.at("spec", "placement"))
        return structs.replace(claim, placement=msgspec.Raw(placement))


UNCHANGED: Final = Rules()


async def unrecorded(log: port.Log, rules: Rules) -> list[PolicyRef]:
    """Return the policies in ``rules`` that were never written to the log. Raises LogError."""
    missing = {ref.object_key: ref for ref in (*rules.specs, *rules.overrides)}
    async for record in reading.of_partition(log, topics.POLICIES, 0):
        if not missing:
            break
        missing.pop(record.key, None)
    return list(missing.values())


class ChangedLog:
    """Reads a log (as ``port.Partitions``), and changes policies and claims (``BindingClaimed``) by the rules.

    Changed records keep their checksums, so digests over them equal the recorded digests.
    """

    def __init__(self, log: port.Partitions, rules: Rules) -> None:
        self._log = log
        self._rules = rules

    async def read(self, topic: str, partition: int, start: int, limit: int) -> list[StoredRecord]:
        records = await self._log.read(topic, partition, start, limit)
        if self._rules.are_unchanged or topic not in {topics.POLICIES, topics.DECISIONS}:
            return records
        return [self._changed(record) for record in records]

    def _changed(self, record: StoredRecord) -> StoredRecord:
        if attributes.get(record, "type") not in _CHANGED_TYPES:
            return record
        try:
            return self._changed_decoded(record)
        except DECODING_ERRORS:
            return record  # it is refused or foreign, so it has no effect

    def _changed_decoded(self, record: StoredRecord) -> StoredRecord:
        match codec.decode(record):
            case codec.Decoded(envelope, policies.PolicyApplied() as applied):
                policy = msgspec.json.decode(applied.manifest, type=policy_objects.Policy)
                data = structs.replace(applied, manifest=self._rules.manifest(policy.ref, applied.manifest))
                return _with_data(record, envelope, data)
            case codec.Decoded(envelope, decisions.BindingClaimed() as claim):
                return _with_data(record, envelope, self._rules.claim(claim))
            case _:
                return record


_CHANGED_TYPES: Final = catalogue.types_of(policies.PolicyApplied, decisions.BindingClaimed)


def _with_data(record: StoredRecord, envelope: records.Envelope, data: shapes.Event) -> StoredRecord:
    """Return the record with new data in CloudEvents' binary mode; it keeps its old checksum, which steps declare."""
    return records.StoredRecord(
        record.topic,
        record.partition,
        record.offset,
        record.number,
        record.key,
        records.to_headers(structs.replace(envelope, type=data.event_type.type)),
        codec.encode_data(data),
        record.checksum,
    )
