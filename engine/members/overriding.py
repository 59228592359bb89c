"""What a work makes of its template: its replicas first, then what the override policies say that hold in its cluster.

Template and policies are read from the log, at the places that the work names.
"""

from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from engine.kube import overriding
from engine.log import port
from engine.members import templates
from engine.members.templates import EMPTY, Template
from engine.objects import overrides
from events import codec, health, limits, policies, shapes, specs, topics, works
from events.forms_schema import as_object

REPLICA_FIELDS: Final = {"Job": "parallelism"}
"""Where a kind has its replicas, within its spec; all others have ``replicas``."""

_REPLICAS: Final = "replicas"
_LOST: Final = "the template, or an override policy, is not in the log"
_KEPT_MAX: Final = 4_096
_OBJECT: Final = msgspec.json.Decoder(dict[str, object])


class Wanted(NamedTuple):
    """A template by its place, with what differs in a cluster."""

    shard: int
    offset: int
    replicas: int | None
    overrides: tuple[shapes.OverrideRef, ...]


class Made(Struct, frozen=True):
    """What came of it; with a ``fault`` nothing else holds, and what runs is to stay as it is."""

    manifest: bytes = b"{}"
    replicas: int | None = None
    template: Template = EMPTY
    fault: str = ""


def wanted_of(work: works.WorkApplied) -> Wanted:
    """What a work asks for."""
    return Wanted(work.shard, work.offset, work.replicas, work.overrides)


class Maker:
    """Makes what works with overrides ask for; the last ones made are kept."""

    def __init__(self, log: port.Log) -> None:
        self._log = log
        self._kept: dict[Wanted, Made] = {}

    async def make(self, wanted: Wanted) -> Made:
        """What a cluster has to run."""
        found = self._kept.get(wanted)
        if found is None:
            found = await self._make(wanted)
            if found.fault == _LOST:
                return found  # it may be there the next time
            self._kept[wanted] = found
            if len(self._kept) > _KEPT_MAX:
                del self._kept[next(iter(self._kept))]
        return found

    async def _make(self, wanted: Wanted) -> Made:
        rules: list[tuple[shapes.OverrideRef, list[msgspec.Raw]]] = []
        template = await self._read(topics.SPECS, wanted.shard, wanted.offset)
        if not isinstance(template, specs.TemplateApplied):
            return Made(fault=_LOST)
        for ref in wanted.overrides:
            policy = await self._read(topics.POLICIES, 0, ref.offset)
            if not isinstance(policy, policies.ConfigurationApplied):
                return Made(fault=_LOST)
            try:
                known = overrides.decode(policy.manifest).rules
                rules.append((ref, [known[place].overriders for place in ref.rules]))
            except (msgspec.MsgspecError, IndexError):
                return Made(fault=_LOST)
        return made(bytes(template.manifest), wanted.replicas, rules)

    async def _read(self, topic: str, partition: int, offset: int) -> shapes.Event | None:
        """The event at a place; a work may be known before what it names, as partitions are followed one by one."""
        for is_level in (False, True):
            if is_level:
                await self._log.level()
            for record in await self._log.read(topic, partition, offset, 1):
                decoded = codec.decode(record)
                if record.offset == offset and isinstance(decoded, codec.Decoded):
                    return decoded.data
        return None


def made(
    template: bytes, replicas: int | None, rules: list[tuple[shapes.OverrideRef, list[msgspec.Raw]]]
) -> Made:
    """The template with its replicas, and then with each policy's rules, in order."""
    try:
        value = _OBJECT.decode(template)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return Made(fault="the template can't be read")
    kind = str(value.get("kind"))
    if replicas is not None:
        spec = as_object(value.get("spec")) or {}
        value = {**value, "spec": {**spec, REPLICA_FIELDS.get(kind, _REPLICAS): replicas}}
    for ref, overriders in rules:
        try:
            for raw in overriders:
                value = overriding.overridden(value, overriding.read(raw))
        except overriding.OverrideError as error:
            named = f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
            return _fault(f"{ref.kind} {named}: {error}")
    manifest = msgspec.json.encode(value)
    if replicas is None:
        return Made(manifest=manifest)
    count = (as_object(value.get("spec")) or {}).get(REPLICA_FIELDS.get(kind, _REPLICAS), 1)
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= limits.REPLICAS_MAX:
        return _fault(f"overrides leave {str(count)[:40]!r} replicas")
    return Made(manifest=manifest, replicas=count, template=templates.read(manifest))


def _fault(reason: str) -> Made:
    return Made(fault=reason[: health.FAULT_CHARS_MAX])
