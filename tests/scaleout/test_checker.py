"""The checker finds each kind of violation in hand-made logs, and finds nothing in a correct log."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from tests.scaleout import checker
from tests.scaleout.history import Acknowledged, Entry, History, Slot

SHARD: Final = 0
SPECS: Final = ("specs", SHARD)
DECISIONS: Final = ("decisions", SHARD)
KEY: Final = "default/web-deployment"


def template(offset: int, text: str, event_id: str = "") -> Entry:
    manifest = {"metadata": {"name": "web", "annotations": {"count": text}}}
    return Entry(
        topic="specs",
        partition=SHARD,
        offset=offset,
        key=KEY,
        id=event_id or f"said-{offset}",
        source="/shop",
        kind="template-applied",
        value=msgspec.json.encode({"manifest": manifest}),
    )


def output(offset: int, term: int, step: int, index: int, kind: str, data: object, topic: str = "") -> Entry:
    return Entry(
        topic=topic or "decisions",
        partition=SHARD,
        offset=offset,
        id=f"{SHARD}-{term}-{step}-{index}",
        source=f"/reballast/shards/{SHARD}",
        kind=kind,
        value=msgspec.json.encode(data),
    )


def step(offset: int, number: int, before: Entry | None = None, **changes: Any) -> Entry:  # noqa: ANN401  # JSON
    previous = hashlib.blake2b(before.value, digest_size=16).hexdigest() if before else ""
    ends: dict[str, int] = {}
    whole: dict[str, Any] = {
        "number": number,
        "term": 1,
        "timeMs": number,
        "ends": ends,
        "previous": previous,
    }
    whole |= changes
    return output(offset, int(whole["term"]), number, 0, "step-taken", whole)


def declared(offset: int, number: int, at: int) -> Entry:
    return output(offset, 1, number, 1, "binding-declared", {"key": KEY, "offset": at})


def extents(first: int, *ends: tuple[str, int, int]) -> Entry:
    """Return extents of the shard's partitions, each from a start offset to an end offset."""
    data = {"first": first, "extents": [(topic, SHARD, start, end) for topic, start, end in ends]}
    return Entry(topic="sequence", partition=0, offset=first, value=msgspec.json.encode(data))


WRITES: Final = [template(0, "one"), template(1, "two")]
FIRST: Final = step(0, 1)
SECOND: Final = step(1, 2, FIRST, ends={"specs": 2}, outputs=1)
DECIDED: Final = [FIRST, SECOND, declared(2, 2, 1)]


def log(
    more: Mapping[Slot, list[Entry]] | None = None,
    sequence: list[Entry] | None = None,
    acknowledged: list[Acknowledged] | None = None,
    shown: list[dict[str, str]] | None = None,
) -> History:
    """Return the correct log with some parts replaced."""
    entries: dict[Slot, list[Entry]] = {SPECS: WRITES, DECISIONS: DECIDED} | dict(more or {})
    if sequence is None:
        ends = [(slot[0], 0, len(slot_entries)) for slot, slot_entries in entries.items() if slot_entries]
        sequence = [extents(1, *ends)]
    return History(
        entries=entries,
        sequence=sequence,
        acknowledged=acknowledged or [],
        shown=shown or [{"web": "two"}] * 2,
    )


def findings(history: History) -> list[tuple[str, str]]:
    return [(finding.name, finding.where) for finding in checker.check(history)]


def test_correct_log_has_no_findings() -> None:
    known = [Acknowledged(text="one", number=1), Acknowledged(text="said-1", position=("specs", 0, 1))]
    assert checker.check(log(acknowledged=known)) == []


def test_lost_acknowledged_write_without_a_record() -> None:
    known = [Acknowledged(text="three", position=("specs", SHARD, 2))]
    assert findings(log(acknowledged=known)) == [("lost", "specs/0/2")]


def test_lost_write_missing_before_its_acknowledged_number() -> None:
    assert findings(log(acknowledged=[Acknowledged(text="three", number=2)])) == [("lost", "specs/0/1")]
    assert findings(log(acknowledged=[Acknowledged(text="two", number=1)])) == [("lost", "specs/0/0")]


def test_acknowledged_number_may_be_a_later_one_of_the_object() -> None:
    assert findings(log(acknowledged=[Acknowledged(text="one", number=2)])) == []


def test_lost_input_that_no_step_covers() -> None:
    short = step(1, 2, FIRST, ends={"specs": 1}, outputs=1)
    assert findings(log({DECISIONS: [FIRST, short, declared(2, 2, 1)]})) == [("lost", "specs/0/1")]


def test_lost_input_without_a_decision_of_its_shard() -> None:
    assert findings(log({DECISIONS: [FIRST, SECOND, declared(2, 2, 0)]})) == [("lost", "specs/0/1")]


def test_lost_output_of_a_step() -> None:
    two = step(1, 2, FIRST, ends={"specs": 2}, outputs=2)
    assert findings(log({DECISIONS: [FIRST, two, declared(2, 2, 1)]})) == [("lost", "decisions/0/1")]


def test_duplicated_output() -> None:
    again = log({DECISIONS: [*DECIDED, declared(3, 2, 1)]})
    assert findings(again) == [("duplicated", "decisions/0/3")]


def test_duplicated_input_accepted_twice() -> None:
    writes = [template(0, "one"), template(1, "two", "said-0")]
    assert findings(log({SPECS: writes})) == [("duplicated", "specs/0/1")]


def test_repeated_input_refused_once_is_correct() -> None:
    writes = [*WRITES, template(2, "two", "said-1")]
    third = step(3, 3, SECOND, ends={"specs": 3}, outputs=1)
    data = {"topic": "specs", "partition": SHARD, "offset": 2, "verdict": "repeated"}
    refusal = output(0, 1, 3, 1, "input-rejected", data, "rejections")
    entries = {SPECS: writes, DECISIONS: [*DECIDED, third], ("rejections", SHARD): [refusal]}
    assert findings(log(entries)) == []

    twice = [refusal, replace(refusal, offset=1, id="0-1-3-2")]
    assert findings(log(entries | {("rejections", SHARD): twice})) == [("duplicated", "specs/0/2")]


def test_stale_owner_continues_after_a_higher_term() -> None:
    newer = step(3, 3, SECOND, term=2, ends={"specs": 2})
    older = step(4, 4, newer, term=1, ends={"specs": 2})
    assert findings(log({DECISIONS: [*DECIDED, newer, older]})) == [("stale owner", "decisions/0/4")]


def test_stale_owner_commits_a_step_after_the_valid_one() -> None:
    late = step(3, 2, FIRST, ends={"specs": 1})
    assert findings(log({DECISIONS: [*DECIDED, late]})) == [("stale owner", "decisions/0/3")]


def test_stale_owner_output_without_a_step() -> None:
    work = output(0, 1, 7, 1, "work-applied", {}, "works")
    assert findings(log({("works", SHARD): [work]})) == [("stale owner", "works/0/0")]


def test_non_monotonic_step_numbers_with_a_gap() -> None:
    gap = step(3, 4, SECOND, ends={"specs": 2})
    assert findings(log({DECISIONS: [*DECIDED, gap]})) == [("non-monotonic", "decisions/0/3")]


def test_non_monotonic_time_and_input_ends() -> None:
    back = step(3, 3, SECOND, ends={"specs": 1}, timeMs=1)
    wrong = findings(log({DECISIONS: [*DECIDED, back]}))
    assert wrong == [("lost", "specs/0/1"), *[("non-monotonic", "decisions/0/3")] * 2]


def test_non_monotonic_extents_that_do_not_join() -> None:
    sequence = [extents(1, ("specs", 0, 2)), extents(3, ("decisions", 1, 3))]
    wrong = findings(log(sequence=sequence))
    assert ("non-monotonic", "sequence/0/3") in wrong
    assert ("unseen", "decisions/0/2") in wrong


def test_concurrent_extents_of_two_replicas_are_correct() -> None:
    first, second = extents(1, ("specs", 0, 2)), extents(3, ("decisions", 0, 3))
    assert findings(log(sequence=[first, first, second, second])) == []


def test_non_monotonic_step_numbered_before_its_inputs() -> None:
    sequence = [extents(1, ("decisions", 0, 3), ("specs", 0, 2))]
    assert findings(log(sequence=sequence)) == [("non-monotonic", "decisions/0/1")]


def test_unseen_record_without_a_number() -> None:
    sequence = [extents(1, ("specs", 0, 2), ("decisions", 0, 2))]
    assert findings(log(sequence=sequence)) == [("unseen", "decisions/0/2")]


def test_unseen_acknowledged_number_that_was_not_assigned() -> None:
    assert findings(log(acknowledged=[Acknowledged(text="two", number=99)])) == [("unseen", "number 99")]


def test_unseen_write_missing_on_one_replica() -> None:
    wrong = findings(log(shown=[{"web": "two"}, {"web": "one"}]))
    assert wrong == [("unseen", "specs/0/1"), ("unseen", "web")]
