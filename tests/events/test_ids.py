"""Deterministic identifiers, and uids that do not influence Karmada's tie breaks."""

import re
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import ids

SHAPE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}")
COUNTS = st.integers(0, 2**40)


def fnv1a_32(text: str) -> int:
    """Return the published FNV-1a hash, by which Karmada breaks ties."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


@pytest.mark.parametrize(
    ("text", "value"), [("", 0x811C9DC5), ("a", 0xE40C292C), ("b", 0xE70C2DE5), ("foobar", 0xBF9CF968)]
)
def test_fnv1a_has_its_published_values(text: str, value: int) -> None:
    assert fnv1a_32(text) == value


@given(st.text(), st.text(), st.text())
def test_uid_is_a_uuid_with_an_even_hash(source: str, event_id: str, key: str) -> None:
    uid = ids.object_uid(source, event_id, key)
    assert SHAPE.fullmatch(uid)
    assert str(uuid.UUID(uid)) == uid
    assert fnv1a_32(uid) % 2 == 0
    assert ids.object_uid(source, event_id, key) == uid


def test_different_events_have_different_uids() -> None:
    made = {ids.object_uid(s, e, k) for s in ("/a", "/b") for e in ("1", "2") for k in ("x", "y")}
    assert len(made) == 8


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_output_id_contains_its_step(shard: int, term: int, step: int, index: int) -> None:
    assert ids.step_of(ids.output_id(shard, term, step, index)) == (shard, term, step)


@pytest.mark.parametrize("other", ["", "1-2-3", "1-2-3-4-5", "a-b-c-d", "event-17"])
def test_other_ids_are_not_output_ids(other: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        ids.step_of(other)
