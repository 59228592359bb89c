"""Load templates from the log in batches, with a cache for later works."""

import itertools
from collections.abc import Iterable
from typing import Final

from engine import loop_share
from engine.log import port
from engine.works import autoscalers, quotas, templates
from engine.works.templates import EMPTY, Template
from events import codec, records, specs, status_values, topics, works

TemplatePosition = tuple[int, int]
"""Position of a template in the topic ``specs``: shard and offset."""

_CACHED_MAX: Final = 16_384
_WINDOW: Final = 256
"""Records whose offsets are closer than this are read together."""


def needs_template(work: works.WorkApplied) -> bool:
    """Whether a member needs the template of a work. Works with overrides are rendered instead (``manifests``)."""
    has_content = (
        work.replicas is not None
        or work.reading is not None
        or status_values.is_custom(work.template.api_version)
        or work.template.kind
        in {
            templates.PRIORITY_CLASS,
            templates.DEFINITION,
            autoscalers.KIND,
            quotas.KIND,
            *templates.COUNTED_BY_MEMBERS,
        }
    )
    return has_content and not work.overrides


async def read_at(
    log: port.Log, topic: str, partition: int, offsets: list[int]
) -> dict[int, records.StoredRecord]:
    """Return the existing records at these sorted offsets; close ones are read together."""
    records_by_offset: dict[int, records.StoredRecord] = {}
    first = 0
    while first < len(offsets):
        start = offsets[first]
        last = first
        while last + 1 < len(offsets) and offsets[last + 1] < start + _WINDOW:
            last += 1
        batch, end = set(offsets[first : last + 1]), offsets[last] + 1
        first = last + 1
        # A read returns fewer records than requested if they are large.
        while start < end and (records_read := await log.read(topic, partition, start, end - start)):
            records_by_offset |= {record.offset: record for record in records_read if record.offset in batch}
            start = records_read[-1].offset + 1
    return records_by_offset


async def manifest_at(log: port.Log, position: TemplatePosition) -> bytes | None:
    """Return the manifest of the template at a position; None if there is none."""
    shard, offset = position
    for record in (await read_at(log, topics.SPECS, shard, [offset])).values():
        if isinstance(applied := codec.event_of(record), specs.TemplateApplied):
            return bytes(applied.manifest)
    return None


class TemplateLoader:
    """Loads templates by position; caches the last ones."""

    def __init__(self, log: port.Log) -> None:
        self._log = log
        self._cached: dict[TemplatePosition, Template] = {}

    async def load(self, positions: Iterable[TemplatePosition]) -> dict[TemplatePosition, Template]:
        """Return the template at each position; EMPTY if there is none."""
        loaded: dict[TemplatePosition, Template] = {}
        missing: dict[int, list[int]] = {}
        for position in sorted(set(positions)):
            cached = self._cached.get(position)
            if cached is None:
                missing.setdefault(position[0], []).append(position[1])
            else:
                loaded[position] = cached
        for shard, offsets in missing.items():
            await self._read(shard, offsets, loaded)
        return loaded

    async def _read(self, shard: int, offsets: list[int], loaded: dict[TemplatePosition, Template]) -> None:
        stored = await read_at(self._log, topics.SPECS, shard, offsets)
        share = loop_share.LoopShare()
        for offset in offsets:
            await share.pause()
            record = stored.get(offset)
            template = EMPTY
            if record is not None:
                template = await loop_share.in_thread_if_large(len(record.value), _template, record)
            loaded[shard, offset] = template
            self._cache((shard, offset), template)

    def _cache(self, position: TemplatePosition, template: Template) -> None:
        self._cached[position] = template
        if len(self._cached) > _CACHED_MAX:
            # Drop many at once: finding the first item of a dict walks over all that were deleted before it.
            for oldest in list(itertools.islice(self._cached, _CACHED_MAX // 2)):
                del self._cached[oldest]


def _template(record: records.StoredRecord) -> Template:
    applied = codec.event_of(record)
    return templates.read(applied.manifest) if isinstance(applied, specs.TemplateApplied) else EMPTY
