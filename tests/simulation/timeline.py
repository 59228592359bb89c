"""Timeline of a violation: records about the binding or cluster, before and after the violating one."""

import re
from typing import Final

from events import codec
from events.records import StoredRecord
from tests.simulation import world

_BEFORE: Final = 14
_AFTER: Final = 4
_POSITION: Final = re.compile(r"\((\w+/\d+/\d+)\)")
_NAME: Final = re.compile(r"\b(?:default/[\w-]+|member\d+)")
_QUIET: Final = ("capacity-reported", "step-taken")


async def around(played: world.World, wrong: list[str]) -> list[str]:
    """Return the records about the first violation, one per line, with an empty last line."""
    records = await played.log.read_all(0, played.log.last_number())
    names = set(_NAME.findall(wrong[0]))
    position = _POSITION.search(wrong[0])
    found = [record for record in records if _speaks_of(record, names)]
    place = len(found)
    if position is not None:
        place = next(
            (place for place, record in enumerate(found) if str(record.position) == position[1]), place
        )
    shown = found[max(place - _BEFORE, 0) : place + _AFTER]
    return ["timeline:", *(_line(record) for record in shown), ""]


def _speaks_of(record: StoredRecord, names: set[str]) -> bool:
    if any(word in record.headers.get("ce_type", "") for word in _QUIET):
        return False
    about = f"{record.key} {record.headers.get('ce_subject', '')} ".encode() + record.value
    return any(re.search(rf"{re.escape(name)}\b".encode(), about) for name in names)


def _line(record: StoredRecord) -> str:
    decoded = codec.decode(record)
    what = str(decoded.data) if isinstance(decoded, codec.Decoded) else "unreadable"
    return f"{record.headers.get('ce_time', ''):24} {record.position!s:18} {what[:260]}"
