"""The ids that a partition has seen of late, in 25 bytes each: the window of a busy log has hundreds of thousands."""

from typing import Final

from msgspec import Struct

from events import limits

DIGEST_BYTES: Final = 16
_OFFSET_BYTES: Final = 8
_ENTRY_BYTES: Final = DIGEST_BYTES + _OFFSET_BYTES


class RecentIds(Struct):
    """Digests of ids that were seen at the last ``limits.RECENT_IDS`` offsets.

    ``entries`` has each digest with its offset, oldest first, by the first byte of the digest; ``order`` those first
    bytes over all, oldest first. ``full_at`` is the offset at which the oldest is forgotten. An id that was repeated
    within the window is there as often as it was seen.
    """

    entries: dict[int, bytearray] = {}
    order: bytearray = bytearray()
    full_at: int = 0

    def see(self, digest: bytes, offset: int) -> bool:
        """Take the digest of an id at an offset, higher than all before; return whether it is a repetition."""
        if offset >= self.full_at:
            self._forget(offset)
        first = digest[0]
        entries = self.entries.get(first)
        if entries is None:
            entries = self.entries[first] = bytearray()
        place = entries.find(digest)
        while place > 0 and place % _ENTRY_BYTES:
            place = entries.find(digest, place + 1)
        entries += digest + offset.to_bytes(_OFFSET_BYTES)
        self.order.append(first)
        return place >= 0

    def __len__(self) -> int:
        """How many offsets had an id."""
        return len(self.order)

    def _forget(self, offset: int) -> None:
        """Drops what lies a window before an offset."""
        self.full_at = offset + limits.RECENT_IDS
        while self.order:
            entries = self.entries[self.order[0]]
            full_at = int.from_bytes(entries[DIGEST_BYTES:_ENTRY_BYTES]) + limits.RECENT_IDS
            if full_at > offset:
                self.full_at = full_at
                return
            del entries[:_ENTRY_BYTES], self.order[:1]
