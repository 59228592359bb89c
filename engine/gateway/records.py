"""Records of the log for questions: a page by their numbers, or of all that stand behind one."""

from collections.abc import Sequence
from typing import Final

from engine import loop_share
from engine.gateway import answers, queries
from engine.gateway.entries import Entry, entry
from engine.gateway.refusals import RefusalError
from engine.log.port import LogCutError, NumberedLog
from events import topics
from events.records import StoredRecord

_BATCH_RECORDS: Final = 512
_LOOKED_AT_MAX: Final = 20_000
_PAGE_BYTES_MAX: Final = 8 * 1024 * 1024


async def numbered(log: NumberedLog, numbers: Sequence[int], *, is_full: bool) -> answers.Entries:
    """The records with these numbers; ``is_full`` tells that there may be more. Raises LogCutError for one not kept."""
    items: list[Entry] = []
    size, share = 0, loop_share.LoopShare()
    for number in numbers:
        await share.pause()
        if size > _PAGE_BYTES_MAX:
            return answers.Entries(items=items, after=items[-1].number)
        found = await log.read_all(number - 1, 1)
        if not found or found[0].number != number:
            raise _not_kept(number)
        items.append(entry(found[0]))
        size += len(found[0].value)
    return answers.Entries(items=items, after=numbers[-1] if is_full else 0)


def check_topic(topic: str) -> None:
    """Raises RefusalError for a name, not an empty one, that no topic has."""
    if topic and topic not in topics.TOPICS:
        names = ", ".join(topics.TOPICS)
        raise RefusalError(400, "topic", f"there is no topic {topic[:80]!r}", f"name one of: {names}")


async def behind(log: NumberedLog, wanted: queries.LogQuery) -> answers.Entries:
    """A page of the records behind a number, of those that are wanted.

    Raises RefusalError for no topic, LogCutError where one that stood there is not kept.
    """
    check_topic(wanted.topic)
    await log.newest()
    items: list[Entry] = []
    after, looked_at, size = wanted.after, 0, 0
    share = loop_share.LoopShare()
    while after < log.last_number():
        batch = await log.read_all(after, _BATCH_RECORDS)
        if not batch:
            # The log's last number is a record's, so there was one.
            raise _not_kept(after + 1)
        for record in batch:
            await share.pause()
            after = record.number
            looked_at += 1
            if fits(record, wanted.topic, wanted.key):
                items.append(entry(record))
                size += len(record.value)
            if len(items) == wanted.limit or size > _PAGE_BYTES_MAX or looked_at == _LOOKED_AT_MAX:
                return answers.Entries(items=items, after=after if after < log.last_number() else 0)
    return answers.Entries(items=items)


def _not_kept(number: int) -> LogCutError:
    return LogCutError(f"the log is not kept at number {number} any more; restore its records")


def fits(record: StoredRecord, topic: str, key: str) -> bool:
    """Whether a record is of the topic and about the key, where they are named."""
    about = key in ("", record.key) or record.headers.get("ce_subject") == key
    return topic in ("", record.topic) and about
