"""The checksum of a record covers all its parts."""

from hypothesis import given
from hypothesis import strategies as st

from events import records

HEADERS = {"ce_id": "1", "ce_source": "/a"}


def checksum(
    topic: str = "specs",
    partition: int = 1,
    key: str = "a",
    headers: dict[str, str] = HEADERS,
    value: bytes = b"{}",
) -> bytes:
    return records.record(topic, partition, key, headers, value).checksum


def test_each_part_changes_the_checksum() -> None:
    changed = {
        checksum(),
        checksum(topic="health"),
        checksum(partition=2),
        checksum(key="b"),
        checksum(headers={**HEADERS, "ce_id": "2"}),
        checksum(headers={}),
        checksum(value=b"[]"),
    }
    assert len(changed) == 7
    assert checksum() == checksum()
    assert all(len(each) == records.CHECKSUM_BYTES for each in changed)


def test_bytes_moved_between_parts_change_the_checksum() -> None:
    # Without the key's length these would be the same bytes in the same order.
    one = checksum(key="a", headers={}, value=b"{}\0rest")
    other = checksum(key="a\0{}", headers={}, value=b"rest")
    assert one != other


@given(st.binary(min_size=1, max_size=200), st.data())
def test_flipped_bit_changes_the_checksum(value: bytes, data: st.DataObject) -> None:
    bit = data.draw(st.integers(0, 8 * len(value) - 1))
    flipped = bytearray(value)
    flipped[bit // 8] ^= 1 << bit % 8
    assert checksum(value=bytes(flipped)) != checksum(value=value)


def test_stored_record_keeps_its_checksum_and_has_a_position() -> None:
    record = records.record("specs", 3, "a", HEADERS, b"{}")
    stored = records.stored(record, 17, 42)
    assert stored.checksum == record.checksum
    assert stored.headers == HEADERS
    assert str(stored.position) == "specs/3/17"
    assert stored.position < records.Position("specs", 3, 18) < records.Position("specs", 4, 0)
