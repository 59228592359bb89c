"""Render what a work runs: its template with replicas and labels, then the override policies that apply.

Template and policies are read from the log, at the positions in the work.
"""

import contextlib
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from engine import loop_share
from engine.bounded_caches import BoundedCache
from engine.domain import federated_quotas, replica_fields
from engine.kubeapi.schema import type_errors
from engine.kubeapi.schema.resources import control_plane
from engine.log import port
from engine.overrides import application
from engine.overrides import policies as overrides_policies
from engine.works import template_loading, templates
from engine.works.templates import EMPTY, Template
from events import codec, health, limits, policies, shapes, specs, topics, works
from events.json_values import DECODING_ERRORS
from events.kube_objects import KubeObject
from events.records import is_deeper

_MISSING: Final = "the template, or an override policy, is not in the log"
_CACHED_MAX: Final = 4_096
_CACHED_BYTES_MAX: Final = 64 * 1024 * 1024
"""Maximum total bytes of the cached results: an object of 1 MiB may differ in each of thousands of clusters.

The cached policies have the same limit, since a policy may also have 1 MiB.
"""

_Rules = tuple[overrides_policies.Rule, ...]
_OBJECT: Final = msgspec.json.Decoder(dict[str, object])


class RenderInput(NamedTuple):
    """The position of a template in the log, and the replicas, labels and overrides of one cluster.

    No field has a default, so that no caller forgets one.
    """

    shard: int
    offset: int
    replicas: int | None
    overrides: tuple[shapes.OverrideRef, ...]
    labels: tuple[tuple[str, str], ...]
    replicas_at: str
    completions: int | None


class _PolicyRules(NamedTuple):
    """The rules of an override policy, and the size of its manifest in bytes."""

    rules: _Rules
    size: int


class Rendered(Struct, frozen=True):
    """The rendered result; with a ``fault`` the other fields are invalid and the previous work continues to run."""

    manifest: bytes = b"{}"
    replicas: int | None = None
    template: Template = EMPTY
    fault: str = ""


def input_of(work: works.WorkApplied) -> RenderInput:
    return RenderInput(
        work.shard,
        work.offset,
        work.replicas,
        work.overrides,
        sorted_labels(work.labels),
        replica_fields.declared_path(work.reading),
        work.completions,
    )


def sorted_labels(labels: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Return labels in an order that does not depend on how they were written."""
    return tuple(sorted(labels.items()))


class Renderer:
    """Renders works with overrides; caches the last results."""

    def __init__(self, log: port.Log) -> None:
        self._log = log
        self._cached: BoundedCache[RenderInput, Rendered] = BoundedCache(
            _CACHED_BYTES_MAX, lambda rendered: len(rendered.manifest), _CACHED_MAX
        )
        self._policies: BoundedCache[int, _PolicyRules] = BoundedCache(
            _CACHED_BYTES_MAX, lambda policy: policy.size, _CACHED_MAX
        )

    async def render(self, render_input: RenderInput) -> Rendered:
        """Return the rendered result for one cluster."""
        return (await self.render_all([render_input]))[render_input]

    async def render_all(self, render_inputs: Iterable[RenderInput]) -> dict[RenderInput, Rendered]:
        """Return the rendered results; templates and policies are read from the log in batches."""
        distinct = dict.fromkeys(render_inputs)
        results = {
            render_input: rendered
            for render_input in distinct
            if (rendered := self._cached.get(render_input)) is not None
        }
        missing = [render_input for render_input in distinct if render_input not in results]
        positions = {
            (render_input.shard, render_input.offset)
            for render_input in missing
            if federated_quotas.assignment_ref(render_input.overrides) is None
        }
        templates_at = await self._templates(positions)
        rules = await self._rules_at(
            {ref.offset for render_input in missing for ref in render_input.overrides}
        )
        share = loop_share.LoopShare()
        for render_input in missing:
            await share.pause()
            template = templates_at.get((render_input.shard, render_input.offset))
            rendered = await loop_share.in_thread_if_large(
                len(template or b""), _render, render_input, template, rules
            )
            results[render_input] = rendered
            if rendered.fault != _MISSING:  # Not cached: the records may arrive later.
                self._cached.put(render_input, rendered)
        return results

    async def _templates(
        self, positions: set[template_loading.TemplatePosition]
    ) -> dict[template_loading.TemplatePosition, bytes]:
        templates_read: dict[template_loading.TemplatePosition, bytes] = {}
        for shard in sorted({shard for shard, _ in positions}):
            offsets = sorted(offset for position_shard, offset in positions if position_shard == shard)
            for offset, data in (await self._read(topics.SPECS, shard, offsets)).items():
                if isinstance(data, specs.TemplateApplied):
                    templates_read[shard, offset] = bytes(data.manifest)
        return templates_read

    async def _rules_at(self, offsets: set[int]) -> dict[int, _Rules]:
        """Return the rules of the policies at these offsets; offsets without a policy in the log are left out."""
        # Do not rely on the cache after this: concurrent calls may evict rules from it while this call waits.
        rules = {
            offset: policy.rules for offset in offsets if (policy := self._policies.get(offset)) is not None
        }
        missing = sorted(offsets - rules.keys())
        for offset, data in (await self._read(topics.POLICIES, 0, missing)).items():
            if isinstance(data, policies.ConfigurationApplied):
                with contextlib.suppress(msgspec.MsgspecError):
                    rules[offset] = _rules(data.manifest)
                    # The overriders are parts of the manifest's JSON, so all of it stays in memory.
                    size = memoryview(data.manifest).nbytes
                    self._policies.put(offset, _PolicyRules(rules[offset], size))
        return rules

    async def _read(self, topic: str, partition: int, offsets: list[int]) -> dict[int, shapes.Event]:
        """Return the events at some offsets.

        If an event is missing, wait for the log once: partitions are followed independently, so a work may be
        visible before the records that it names.
        """
        records = await template_loading.read_at(self._log, topic, partition, offsets)
        if len(records) < len(offsets):
            await self._log.wait_current()
            records = await template_loading.read_at(self._log, topic, partition, offsets)
        read = {offset: codec.event_of(record) for offset, record in records.items()}
        return {offset: event for offset, event in read.items() if event is not None}


def _render(render_input: RenderInput, template: bytes | None, rules_at: dict[int, _Rules]) -> Rendered:
    rules: list[tuple[shapes.OverrideRef, list[msgspec.Raw]]] = []
    for ref in render_input.overrides:
        policy_rules = rules_at.get(ref.offset, ())
        if any(index >= len(policy_rules) for index in ref.rules):
            return Rendered(fault=_MISSING)
        rules.append((ref, [policy_rules[index].overriders for index in ref.rules]))
    if federated_quotas.assignment_ref(render_input.overrides) is not None:
        ((_ref, (quota,)),) = rules
        return Rendered(manifest=bytes(quota), template=templates.read(quota))
    return Rendered(fault=_MISSING) if template is None else render(template, render_input, rules)


def _rules(manifest: msgspec.Raw) -> _Rules:
    """Return the rules of an override policy; for a FederatedResourceQuota, the quotas that it assigns."""
    policy = overrides_policies.decode(manifest)
    if policy.kind != federated_quotas.KIND:
        return policy.rules
    quotas = federated_quotas.quotas(manifest)
    return tuple(overrides_policies.Rule(overriders=msgspec.Raw(quota)) for _cluster, quota in quotas)


def render(
    template: bytes, render_input: RenderInput, rules: list[tuple[shapes.OverrideRef, list[msgspec.Raw]]]
) -> Rendered:
    """Apply replicas and labels, then each policy's rules, to the template; an error is returned as the ``fault``."""
    replicas = render_input.replicas
    try:
        value = _OBJECT.decode(template)
    except DECODING_ERRORS:
        return Rendered(fault="the template can't be read")
    counted = replica_fields.with_counts(value, render_input.replicas_at, replicas, render_input.completions)
    labelled = replica_fields.with_labels(counted, dict(render_input.labels))
    application_state = application.OverrideApplication(KubeObject(labelled))
    for ref, overriders in rules:
        try:
            for raw in overriders:
                application_state.apply(application.read(raw))
        except application.OverrideError as error:
            policy_name = f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
            return _fault(f"{ref.kind} {policy_name}: {error}")
    overridden = application_state.value
    manifest = _encoded(overridden)
    if manifest is None:
        return _fault(f"overrides nest the object deeper than {limits.RECORD_DEPTH_MAX} levels")
    if len(manifest) > limits.RECORD_BYTES_MAX:
        return _fault(f"overrides leave {len(manifest)} bytes, more than {limits.RECORD_BYTES_MAX}")
    if wrong := _mistyped(overridden):
        return _fault(f"overrides leave an object that no cluster accepts: {wrong}")
    if replicas is None:
        return Rendered(manifest=manifest, template=templates.read(manifest))
    path = replica_fields.path_of(
        str(value.get("apiVersion")), str(value.get("kind")), render_input.replicas_at
    )
    count_value = overridden.at(*path)
    count = 1 if count_value is None else count_value
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= limits.REPLICAS_MAX:
        return _fault(f"overrides leave {str(count)[:40]!r} replicas")
    return Rendered(manifest=manifest, replicas=count, template=templates.read(manifest))


def _mistyped(value: KubeObject) -> str:
    """Return the first type error of an object; empty for kinds other than Kubernetes' own."""
    resource = control_plane().of_kind(*value.type_meta)
    if resource is None or not resource.is_kubernetes_own:
        return ""
    wrong = type_errors.mistyped(value.document, resource.schema)
    return wrong.message if wrong is not None else ""


def _encoded(value: KubeObject) -> bytes | None:
    """Encode an object; None if it is nested deeper than a record may be, because readers rely on that limit.

    The record of each patch is within the limit, but several patches together may exceed it.
    """
    try:
        manifest = msgspec.json.encode(value.document)
    except RecursionError:
        return None
    return None if is_deeper(manifest, limits.RECORD_DEPTH_MAX) else manifest


def _fault(reason: str) -> Rendered:
    return Rendered(fault=reason[: health.FAULT_CHARS_MAX])
