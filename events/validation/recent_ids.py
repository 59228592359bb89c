"""Window of the ids last seen in a partition; an id takes 25 bytes, since all windows have hundreds of thousands."""

from typing import Final

from msgspec import Struct

from events import limits

DIGEST_BYTES: Final = 16
_OFFSET_BYTES: Final = 8
_ENTRY_BYTES: Final = DIGEST_BYTES + _OFFSET_BYTES


class RecentIds(Struct):
    """Digests of the ids at the last ``limits.RECENT_IDS`` offsets.

    ``entries`` maps the first byte of a digest to all digests with that byte, each followed by its offset,
    oldest first. ``order`` has the first bytes of all digests, oldest first. ``full_at`` is the offset at
    which the oldest entry leaves the window. An id that occurs several times in the window has several
    entries.
    """

    entries: dict[int, bytearray] = {}
    order: bytearray = bytearray()
    full_at: int = 0

    def add(self, digest: bytes, offset: int) -> bool:
        """Record the digest of an id at ``offset``, which must be higher than all before.

        Return whether the id was already in the window.
        """
        if offset >= self.full_at:
            self._forget(offset)
        first = digest[0]
        entries = self.entries.get(first)
        if entries is None:
            entries = self.entries[first] = bytearray()
        index = entries.find(digest)
        # A match that does not start at a multiple of the entry size is a coincidence across entries.
        while index > 0 and index % _ENTRY_BYTES:
            index = entries.find(digest, index + 1)
        entries += digest + offset.to_bytes(_OFFSET_BYTES)
        self.order.append(first)
        return index >= 0

    def __len__(self) -> int:
        return len(self.order)

    def _forget(self, offset: int) -> None:
        """Drop the entries whose offsets are ``limits.RECENT_IDS`` or more below ``offset``."""
        self.full_at = offset + limits.RECENT_IDS
        while self.order:
            entries = self.entries[self.order[0]]
            full_at = int.from_bytes(entries[DIGEST_BYTES:_ENTRY_BYTES]) + limits.RECENT_IDS
            if full_at > offset:
                self.full_at = full_at
                return
            del entries[:_ENTRY_BYTES], self.order[:1]
