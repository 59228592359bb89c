"""The window of recent ids: exact, and small in memory."""

import hashlib
import tracemalloc

from events import limits
from events.validation.recent_ids import DIGEST_BYTES, RecentIds


def digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=DIGEST_BYTES).digest()


def test_ids_of_the_window_are_known_and_no_others() -> None:
    recent = RecentIds()
    ids = [digest(str(number)) for number in range(5_000)]
    assert not any(recent.add(event_id, offset) for offset, event_id in enumerate(ids))
    assert all(recent.add(event_id, 5_000 + offset) for offset, event_id in enumerate(ids))
    assert not recent.add(digest("another"), 10_000)


def test_bytes_across_two_entries_are_not_an_id() -> None:
    recent = RecentIds()
    digest_bytes = b"\1" * DIGEST_BYTES
    recent.add(digest_bytes, 0x0101_0101_0101_0101)
    # The end of the digest and the start of the offset together are these bytes too, eight bytes later.
    recent.add(b"\1" * 8 + b"\2" * 8, 0x0101_0101_0101_0102)
    assert not recent.add(b"\1" * 15 + b"\2", 0x0101_0101_0101_0103)
    assert recent.add(digest_bytes, 0x0101_0101_0101_0104)


def test_id_takes_less_than_32_bytes_of_memory() -> None:
    ids = [digest(str(number)) for number in range(limits.RECENT_IDS)]
    tracemalloc.start()
    recent = RecentIds()
    for offset, event_id in enumerate(ids):
        recent.add(event_id, offset)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(recent) == limits.RECENT_IDS
    assert taken < 32 * limits.RECENT_IDS
