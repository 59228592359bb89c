"""Ids that a source repeats, within the window and behind it."""

from hypothesis import given
from hypothesis import strategies as st

from events import health, limits
from events.validation import verdicts
from tests.builders.log_records import Partition, envelope
from tests.events.verdicts.deployment import KEY, applied, head_of


def test_retry_of_a_producer_is_repeated() -> None:
    partition = Partition.of(applied())
    head = envelope("1", "/a")
    partition.taken(applied(3), head)
    partition.taken(applied(4))
    assert partition.refused(applied(3), head) == "repeated: id: this source has said this id already"
    partition.taken(applied(5), envelope("1", "/b"))
    assert head_of(partition).generation == 3


def test_ids_of_refused_inputs_are_remembered() -> None:
    partition = Partition.of(applied())
    head = envelope("1", "/a")
    assert partition.refused(applied(expects=7), head).startswith("late")
    assert partition.refused(applied(), head).startswith("repeated")


GONE = health.WorkloadGone(cluster="member1", key=KEY, term=1, step=1)


def taken_by_offset(ids: list[tuple[int, str]]) -> list[bool]:
    """Return whether each event was taken; ids by offset."""
    partition = Partition.of(GONE)
    are_taken: list[bool] = []
    for offset, event_id in ids:
        partition.next_offset = offset
        are_taken.append(isinstance(partition.submit(GONE, envelope(event_id)), verdicts.Taken))
    return are_taken


def test_id_is_known_within_the_window_and_forgotten_behind_it() -> None:
    window = limits.RECENT_IDS
    assert taken_by_offset([(0, "a"), (window - 1, "a")]) == [True, False]
    assert taken_by_offset([(0, "a"), (window, "a")]) == [True, True]


def test_repetition_renews_the_window() -> None:
    # Otherwise the verdict would depend on records before the window, which a late reader does not see.
    window = limits.RECENT_IDS
    assert taken_by_offset([(0, "a"), (10, "a"), (window + 5, "a"), (window + 6, "b")]) == [
        True,
        False,
        False,
        True,
    ]


@given(st.lists(st.tuples(st.integers(1, 40_000), st.sampled_from("abc")), max_size=12), st.integers(0, 11))
def test_verdict_on_repetition_depends_on_the_window_only(events: list[tuple[int, str]], start: int) -> None:
    offset, ids = 0, list[tuple[int, str]]()
    for gap, event_id in events:
        offset += gap
        ids.append((offset, event_id))
    whole = taken_by_offset(ids)
    for index, (at, _) in enumerate(ids):
        if index < start:
            continue
        window = [(o, e) for o, e in ids[: index + 1] if o > at - limits.RECENT_IDS]
        assert taken_by_offset(window)[-1] == whole[index]


def test_forgotten_ids_take_no_memory() -> None:
    partition = Partition.of(GONE)
    for offset in range(0, 10 * limits.RECENT_IDS, limits.RECENT_IDS // 4):
        partition.next_offset = offset
        partition.submit(GONE)
    assert len(partition.fold.state.recent) == 4
