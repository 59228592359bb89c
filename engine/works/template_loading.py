"""Load templates from the log in batches, with a cache for later works."""

from collections.abc import Iterable
from typing import Final

from engine import loop_share
from engine.log import port
from engine.works import templates
from engine.works.templates import EMPTY, Template
from events import codec, records, specs, topics, works

Place = tuple[int, int]
"""Position of a template in ``engine/simulation/specs``: shard and offset."""

_KEPT_MAX: Final = 16_384
_WINDOW: Final = 256
"""Records whose offsets are closer than this are read together."""


def is_read(work: works.WorkApplied) -> bool:
    """Whether a member needs the template of a work. Works with overrides are rendered instead (``manifests``)."""
    has_content = (
        work.replicas is not None
        or work.reading is not None
        or work.template.kind == templates.PRIORITY_CLASS
    )
    return has_content and not work.overrides


async def read_at(
    log: port.Log, topic: str, partition: int, offsets: list[int]
) -> dict[int, records.StoredRecord]:
    """Return the existing records at these sorted offsets; close ones are read together."""
    found: dict[int, records.StoredRecord] = {}
    first = 0
    while first < len(offsets):
        start = offsets[first]
        last = first
        while last + 1 < len(offsets) and offsets[last + 1] < start + _WINDOW:
            last += 1
        wanted = set(offsets[first : last + 1])
        first = last + 1
        for record in await log.read(topic, partition, start, max(wanted) - start + 1):
            if record.offset in wanted:
                found[record.offset] = record
    return found


class TemplateLoader:
    """Loads templates by position; keeps the last ones."""

    def __init__(self, log: port.Log) -> None:
        self._log = log
        self._kept: dict[Place, Template] = {}

    async def load(self, places: Iterable[Place]) -> dict[Place, Template]:
        """Return the template at each position; EMPTY if there is none."""
        found: dict[Place, Template] = {}
        missing: dict[int, list[int]] = {}
        for place in sorted(set(places)):
            kept = self._kept.get(place)
            if kept is None:
                missing.setdefault(place[0], []).append(place[1])
            else:
                found[place] = kept
        for shard, offsets in missing.items():
            await self._read(shard, offsets, found)
        return found

    async def _read(self, shard: int, offsets: list[int], found: dict[Place, Template]) -> None:
        read = await read_at(self._log, topics.SPECS, shard, offsets)
        share = loop_share.LoopShare()
        for offset in offsets:
            await share.pause()
            record = read.get(offset)
            template = EMPTY
            if record is not None:
                template = await loop_share.apart(len(record.value), _template, record)
            found[shard, offset] = template
            self._keep((shard, offset), template)

    def _keep(self, place: Place, template: Template) -> None:
        self._kept[place] = template
        if len(self._kept) > _KEPT_MAX:
            del self._kept[next(iter(self._kept))]


def _template(record: records.StoredRecord) -> Template:
    match codec.decode(record):
        case codec.Decoded(data=specs.TemplateApplied(manifest=manifest)):
            return templates.read(manifest)
        case _:
            return EMPTY
