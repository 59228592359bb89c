"""Render what a work runs: its template with replicas and labels, then the override policies that apply.

Template and policies are read from the log, at the positions in the work.
"""

import contextlib
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from engine import loop_share
from engine.log import port
from engine.objects import workloads
from engine.overrides import application
from engine.overrides import policies as overrides_policies
from engine.works import template_loading, templates
from engine.works.templates import EMPTY, Template
from events import codec, health, limits, policies, shapes, specs, topics, works
from events.validation.schema import as_object

_LOST: Final = "the template, or an override policy, is not in the log"
_KEPT_MAX: Final = 4_096
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_OBJECT: Final = msgspec.json.Decoder(dict[str, object])


class Wanted(NamedTuple):
    """A template by position, with the differences for one cluster."""

    shard: int
    offset: int
    replicas: int | None
    overrides: tuple[shapes.OverrideRef, ...]
    labels: tuple[tuple[str, str], ...] = ()
    replicas_at: str = ""


class Made(Struct, frozen=True):
    """The rendered result; with a ``fault`` the other fields are invalid and the former work goes on running."""

    manifest: bytes = b"{}"
    replicas: int | None = None
    template: Template = EMPTY
    fault: str = ""


def wanted_of(work: works.WorkApplied) -> Wanted:
    return Wanted(
        work.shard, work.offset, work.replicas, work.overrides, pairs(work.labels), replicas_at(work.reading)
    )


def replicas_at(reading: shapes.Reading | None) -> str:
    """Return the path of the replicas of a kind if it is not the usual one; empty otherwise."""
    return reading.replicas if reading else ""


def pairs(labels: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Return labels in an order that does not depend on how they were written."""
    return tuple(sorted(labels.items()))


class Maker:
    """Renders works with overrides; keeps the last results."""

    def __init__(self, log: port.Log) -> None:
        self._log = log
        self._kept: dict[Wanted, Made] = {}
        self._rules: dict[int, tuple[overrides_policies.Rule, ...]] = {}

    async def make(self, wanted: Wanted) -> Made:
        """Return the rendered result for one cluster."""
        return (await self.make_all([wanted]))[wanted]

    async def make_all(self, wanted: Iterable[Wanted]) -> dict[Wanted, Made]:
        """Return the rendered results; templates and policies are read from the log in batches."""
        asked = dict.fromkeys(wanted)
        found = {each: self._kept[each] for each in asked if each in self._kept}
        missing = [each for each in asked if each not in found]
        places = {(each.shard, each.offset) for each in missing}
        templates_at = await self._templates(places)
        await self._learn({ref.offset for each in missing for ref in each.overrides})
        share = loop_share.LoopShare()
        for each in missing:
            await share.pause()
            template = templates_at.get((each.shard, each.offset))
            made_now = await loop_share.apart(len(template or b""), self._made, each, template)
            found[each] = made_now
            if made_now.fault != _LOST:  # Not cached: the records may arrive later.
                self._kept[each] = made_now
                _bound(self._kept)
        _bound(self._rules)
        return found

    def _made(self, wanted: Wanted, template: bytes | None) -> Made:
        rules: list[tuple[shapes.OverrideRef, list[msgspec.Raw]]] = []
        for ref in wanted.overrides:
            known = self._rules.get(ref.offset, ())
            if any(place >= len(known) for place in ref.rules):
                return Made(fault=_LOST)
            rules.append((ref, [known[place].overriders for place in ref.rules]))
        return Made(fault=_LOST) if template is None else made(template, wanted, rules)

    async def _templates(self, places: set[template_loading.Place]) -> dict[template_loading.Place, bytes]:
        found: dict[template_loading.Place, bytes] = {}
        for shard in sorted({shard for shard, _ in places}):
            offsets = sorted(offset for each, offset in places if each == shard)
            for offset, data in (await self._read(topics.SPECS, shard, offsets)).items():
                if isinstance(data, specs.TemplateApplied):
                    found[shard, offset] = bytes(data.manifest)
        return found

    async def _learn(self, offsets: set[int]) -> None:
        """Read the policies at these offsets that are not known yet."""
        missing = sorted(offsets - self._rules.keys())
        for offset, data in (await self._read(topics.POLICIES, 0, missing)).items():
            if isinstance(data, policies.ConfigurationApplied):
                with contextlib.suppress(msgspec.MsgspecError):
                    self._rules[offset] = overrides_policies.decode(data.manifest).rules

    async def _read(self, topic: str, partition: int, offsets: list[int]) -> dict[int, shapes.Event]:
        """Return the events at some offsets.

        If one is missing, wait for the log once: partitions are followed independently, so a work may be
        visible before the records that it names.
        """
        records = await template_loading.read_at(self._log, topic, partition, offsets)
        if len(records) < len(offsets):
            await self._log.level()
            records = await template_loading.read_at(self._log, topic, partition, offsets)
        decoded = {offset: codec.decode(record) for offset, record in records.items()}
        return {offset: each.data for offset, each in decoded.items() if isinstance(each, codec.Decoded)}


def _bound(kept: dict[_Key, _Value]) -> None:
    """Drop the oldest entries above the limit."""
    while len(kept) > _KEPT_MAX:
        del kept[next(iter(kept))]


def made(template: bytes, wanted: Wanted, rules: list[tuple[shapes.OverrideRef, list[msgspec.Raw]]]) -> Made:
    """Return the template with replicas and labels, then with each policy's rules applied in order."""
    replicas = wanted.replicas
    try:
        value = _OBJECT.decode(template)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return Made(fault="the template can't be read")
    path = workloads.replicas_path(str(value.get("apiVersion")), str(value.get("kind")), wanted.replicas_at)
    if replicas is not None:
        value = workloads.with_field(value, path, replicas)
    if wanted.labels:
        metadata = as_object(value.get("metadata")) or {}
        labels = {**(as_object(metadata.get("labels")) or {}), **dict(wanted.labels)}
        value = {**value, "metadata": {**metadata, "labels": labels}}
    under = application.Overriding(value)
    for ref, overriders in rules:
        try:
            for raw in overriders:
                under.apply(application.read(raw))
        except application.OverrideError as error:
            named = f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
            return _fault(f"{ref.kind} {named}: {error}")
    value = under.value
    manifest = msgspec.json.encode(value)
    if len(manifest) > limits.RECORD_BYTES_MAX:
        return _fault(f"overrides leave {len(manifest)} bytes, more than {limits.RECORD_BYTES_MAX}")
    if replicas is None:
        return Made(manifest=manifest, template=templates.read(manifest))
    found = workloads.field_at(value, path)
    count = 1 if found is None else found
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= limits.REPLICAS_MAX:
        return _fault(f"overrides leave {str(count)[:40]!r} replicas")
    return Made(manifest=manifest, replicas=count, template=templates.read(manifest))


def _fault(reason: str) -> Made:
    return Made(fault=reason[: health.FAULT_CHARS_MAX])
