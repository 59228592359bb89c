"""Timeline of a violation: records about the binding or cluster, before and after the violating one."""

import re
from typing import Final

from events.records import StoredRecord
from tests.builders.log_records import all_records
from tests.simulation import world

_BEFORE: Final = 14
_AFTER: Final = 4
_POSITION: Final = re.compile(r"\((\w+/\d+/\d+)\)")
_NAME: Final = re.compile(r"\b(?:default/[\w-]+|member\d+)")
_CONTENT_CHARS: Final = 260
_QUIET: Final = ("capacity-reported", "step-taken")


async def around(played: world.World, wrong: list[str]) -> list[str]:
    """Return the records about the first violation, one per line, with an empty last line."""
    records = await all_records(played.log)
    names = set(_NAME.findall(wrong[0]))
    position = _POSITION.search(wrong[0])
    related = [record for record in records if _speaks_of(record, names)]
    index = len(related)
    if position is not None:
        index = next(
            (index for index, record in enumerate(related) if str(record.position) == position[1]), index
        )
    shown = related[max(index - _BEFORE, 0) : index + _AFTER]
    return ["timeline:", *(_line(record) for record in shown), ""]


def _speaks_of(record: StoredRecord, names: set[str]) -> bool:
    if any(word in record.headers.get("ce_type", "") for word in _QUIET):
        return False
    text = f"{record.key} {record.headers.get('ce_subject', '')} ".encode() + record.value
    return any(re.search(rf"{re.escape(name)}\b".encode(), text) for name in names)


def _line(record: StoredRecord) -> str:
    event = record.headers.get("ce_type", "").removeprefix("io.reballast.")
    content = record.value.decode(errors="replace")
    return f"{record.headers.get('ce_time', ''):24} {record.position!s:18} {event} {content[:_CONTENT_CHARS]}"
