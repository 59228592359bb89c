"""Select the records of the embedded log that the proof of some shards needs, without decoding the other records."""

import re
from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct

from engine.log import sqlite_table
from events import ids, topics
from events.records import StoredRecord

_OUTPUT: Final = re.compile(rb"\x01(\d{1,3})-\d{1,20}-\d{1,20}-\d{1,20}\x02shards/\d{1,3}\x03[^\\\x01\x02]*")
"""Pattern of the packed headers that a shard's owner writes; group 1 is the number of the shard."""

_OWNER: Final = ids.SHARD_SOURCE.rpartition("/reballast/")[2].encode()
"""Rest of ``ids.SHARD_SOURCE`` in packed headers, where ``compact`` replaces ``/reballast/`` by a control byte."""


class Portion(Struct, frozen=True):
    """Records of a share from one read: ``count`` records were examined, the last one has the sequence number ``last``.

    ``passed`` has, by partition, the offset after the last examined record that is not in the share.
    """

    records: list[StoredRecord]
    count: int
    last: int
    passed: dict[tuple[str, int], int] = {}


class Share:
    """The share of a log's records that the proof of some shards needs.

    It contains the records of the shards' partitions and of topics with one partition, except works and observations.
    It also contains each record, in any topic and partition, whose headers may name an output of these shards. The
    other works in the shards' partitions and the other observations are not returned, but their checksums are
    compared, so that the shares of all shards together check every record.
    """

    def __init__(self, shards: Collection[int]) -> None:
        self._shards = frozenset(shards)
        self._read: set[int] = set()
        self._checked: set[int] = set()
        for name, topic in topics.TOPICS.items():
            partitions = self._shards if topic.sharded else {0}
            slots = {sqlite_table.slot_of(name, partition) for partition in partitions}
            (self._checked if name in _OUTPUTS_ONLY else self._read).update(slots)

    def of(self, rows: Sequence[sqlite_table.Row], after: int) -> Portion:
        """Return a share's records in rows read after a sequence number; raises LogCorruptedError."""
        selected: list[sqlite_table.Row] = []
        checked: list[sqlite_table.Row] = []
        ends: dict[int, int] = {}
        for row in rows:
            slot = row[sqlite_table.SLOT]
            if slot in self._read or self.may_be_output(row[sqlite_table.HEADERS]):
                selected.append(row)
                continue
            ends[slot] = row[sqlite_table.OFFSET] + 1
            if slot in self._checked:
                checked.append(row)
        sqlite_table.check(checked)
        passed = {sqlite_table.partition_of_slot(slot): end for slot, end in ends.items()}
        return Portion(sqlite_table.stored(selected), len(rows), rows[-1][0] if rows else after, passed)

    def may_be_output(self, packed: bytes) -> bool:
        """Whether headers may name an output of these shards; True for headers in an unusual form.

        An owner writes headers in one form; JSON in another form, such as with escapes or a repeated name, may
        decode to the same headers.
        """
        if _OWNER not in packed and b"\\" not in packed:
            return False
        output = _OUTPUT.fullmatch(packed)
        if output is None or b'"ce_id"' in packed or b'"ce_source"' in packed:
            return True
        shard = int(output[1])
        return shard in self._shards or shard >= topics.SHARDS


_OUTPUTS_ONLY: Final = (topics.WORKS, topics.OBSERVATIONS)
"""Topics that no shard reads: a share contains only their records that may be outputs of its shards."""
