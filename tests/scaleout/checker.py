"""Independent checker of a log: finds violations by its own rules and shares no code with the engine.

=============  ==========================================================================================
lost           an acknowledged write that is not in the log; an input that no step covers, or that its shard's
               decisions ignore; an output that a step declares and that is not in the log
duplicated     two outputs of a step with the same index; a repeated input that was not refused
stale owner    a valid step with a lower term than an earlier one; a committed step or output of an owner
               whose shard had already continued with another owner
non-monotonic  steps with a gap in their numbers, with a lower input end or an earlier time than the step
               before; a sequence extent that does not join, or that numbers a step before its inputs or
               after its outputs
unseen         a record without a number at the end; an acknowledged write that a replica does not return
=============  ==========================================================================================

The policy of the test must select all Deployments and nothing else: shards decide nothing about other objects.
"""

import hashlib
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from tests.scaleout.history import PARTITIONS, Acknowledged, Entry, History

LOST: Final = "lost"
DUPLICATED: Final = "duplicated"
STALE: Final = "stale owner"
DISORDERED: Final = "non-monotonic"
UNSEEN: Final = "unseen"

_INPUTS: Final = ("specs", "policies", "clusters", "health", "links")
_OWN: Final = ("specs", "links")
"""Topics that only their shard reads, and reads at once; facts wait for the next step with a decision."""

_FACTS: Final = ("policies", "clusters")
_PLACED: Final = "-deployment"
"""Suffix of the binding keys that the policy selects."""

_SHARD: Final = "/reballast/shards/"
_STEP: Final = "step-taken"


class Finding(Struct, frozen=True, order=True):
    """A violation, and the position where it shows."""

    name: str
    where: str
    message: str


class Step(Struct):
    """A recorded step; ``is_valid``: it is the successor of the last valid step."""

    entry: Entry
    said: dict[str, Any]
    is_valid: bool


def check(history: History) -> list[Finding]:
    """Return all violations; an empty list for a correct log."""
    shards = {shard: _steps(history, shard) for shard in range(PARTITIONS["decisions"])}
    findings = [*_acknowledged(history), *_repeated(history), *_numbers(history), *_shown(history)]
    for shard, steps in shards.items():
        findings += [*_chain(shard, steps), *_order(history, shard, steps), *_taken(history, shard, steps)]
    return sorted([*findings, *_outputs(history, shards), *_declared(history, _valid(shards))])


def names(findings: Iterable[Finding]) -> list[str]:
    """Return the distinct names of the findings."""
    return sorted({finding.name for finding in findings})


def _steps(history: History, shard: int) -> list[Step]:
    """Return the steps of a shard, each with whether it extends the chain; terms are checked elsewhere."""
    steps: list[Step] = []
    number, digest = 0, ""
    for entry in history.entries.get(("decisions", shard), ()):
        if entry.kind != _STEP:
            continue
        data = entry.data
        follows = data["number"] == number + 1 and data.get("previous", "") == digest
        if follows:
            number, digest = data["number"], hashlib.blake2b(entry.value, digest_size=16).hexdigest()
        steps.append(Step(entry, data, follows))
    return steps


def _chain(shard: int, steps: Sequence[Step]) -> Iterator[Finding]:
    number = term = 0
    for step in steps:
        location, data = step.entry.position, step.said
        if step.is_valid:
            if data["term"] < term:
                yield Finding(
                    STALE, location, f"term {data['term']} goes on in shard {shard} after term {term}"
                )
            number, term = data["number"], max(term, data["term"])
        elif data["number"] <= number:
            description = f"step {data['number']} of shard {shard}, of term {data['term']}"
            yield Finding(STALE, location, f"{description}, comes after step {number} of term {term}")
        else:
            yield Finding(
                DISORDERED, location, f"step {data['number']} of shard {shard} does not follow {number}"
            )


def _order(history: History, shard: int, steps: Sequence[Step]) -> Iterator[Finding]:
    """Times and input ends never decrease; a step has a higher number than its inputs."""
    before: dict[str, Any] = {"timeMs": 0, "ends": {}}
    for step in (step for step in steps if step.is_valid):
        location, data = step.entry.position, step.said
        if data["timeMs"] < before["timeMs"]:
            yield Finding(DISORDERED, location, "its time lies before that of the step before")
        number = history.numbering.number(step.entry.slot, step.entry.offset)
        for topic, end in data["ends"].items():
            if end < before["ends"].get(topic, 0):
                yield Finding(DISORDERED, location, f"{topic} is taken back to {end}")
            last = history.numbering.number((topic, 0 if topic in _FACTS else shard), end - 1) if end else 0
            if number and not last < number:
                yield Finding(DISORDERED, location, f"it has number {number}, its last of {topic} {last}")
        before = data


def _taken(history: History, shard: int, steps: Sequence[Step]) -> Iterator[Finding]:
    """Every input of the shard's own topics is covered by a step."""
    ends: dict[str, int] = {}
    for step in steps:
        ends = step.said["ends"] if step.is_valid else ends
    for topic in _OWN:
        for entry in history.entries.get((topic, shard), ()):
            if entry.offset >= ends.get(topic, 0):
                yield Finding(LOST, entry.position, "no step took it")


def _valid(shards: dict[int, list[Step]]) -> dict[str, Step]:
    """Return the valid steps by the prefix of their outputs' ids (shard-term-number)."""
    return {
        f"{shard}-{step.said['term']}-{step.said['number']}": step
        for shard, steps in shards.items()
        for step in steps
        if step.is_valid
    }


def _declared(history: History, valid: Container[str]) -> Iterator[Finding]:
    """The last declaration of each template is about its last write that was not refused."""
    refused = _refused(history)
    declared: dict[str, Entry] = {}
    declarations = [
        entry
        for entry in history.of("decisions")
        if entry.kind in {"binding-declared", "binding-withdrawn"} and entry.id.rpartition("-")[0] in valid
    ]
    for entry in declarations:
        declared[entry.data["key"]] = entry
    for entry in _last_writes(history):
        last = declared.get(entry.key)
        if entry.kind == "template-deleted":
            if last is not None and last.kind != "binding-withdrawn":
                yield Finding(LOST, entry.position, f"{entry.key} is deleted, and was not withdrawn")
        elif last is None or last.data.get("offset", 0) != entry.offset:
            yield Finding(LOST, entry.position, f"{entry.key} was written, and its shard does not say so")
    for entry in declarations:
        if entry.kind == "binding-declared":
            position = ("specs", entry.partition, entry.data.get("offset", 0))
            if refused[position]:
                yield Finding(DUPLICATED, entry.position, "it declares what was refused")


def _last_writes(history: History) -> list[Entry]:
    """Return the last accepted write of each Deployment."""
    refused = _refused(history)
    last: dict[str, Entry] = {}
    for entry in history.of("specs"):
        is_placed = entry.kind.startswith("template-") and entry.key.endswith(_PLACED)
        if is_placed and not refused[entry.topic, entry.partition, entry.offset]:
            last[entry.key] = entry
    return list(last.values())


def _refused(history: History) -> Counter[tuple[str, int, int]]:
    """Count the rejections of each position."""
    refusals = [entry.data for entry in history.of("rejections")]
    return Counter(
        (refusal.get("topic", ""), refusal.get("partition", 0), refusal.get("offset", -1))
        for refusal in refusals
    )


def _acknowledged(history: History) -> Iterator[Finding]:
    standing = {
        (*slot, entry.offset): entry for slot, entries in history.entries.items() for entry in entries
    }
    for write in history.acknowledged:
        position = write.position
        if position is None and (stored_at := history.numbering.position(write.number)) is not None:
            position = (*stored_at[0], stored_at[1])
        entry = standing.get(position) if position else None
        if position is None:
            yield Finding(UNSEEN, f"number {write.number}", f"{write.text} has a number that stands nowhere")
        elif (entry is None or not _has(entry, write.text)) and not _is_numbered_before(history, write):
            yield Finding(LOST, "/".join(map(str, position)), f"{write.text} was acknowledged here")


def _has(entry: Entry, text: str) -> bool:
    return text.encode() in entry.id.encode() + entry.value


def _is_numbered_before(history: History, known: Acknowledged) -> bool:
    """Whether an input with this text has a number up to the acknowledged one.

    The Kubernetes API returns the object's number, which a later record about the same object may have
    raised.
    """
    return known.position is None and any(
        _has(entry, known.text) and 0 < history.numbering.number(entry.slot, entry.offset) <= known.number
        for entry in history.of(*_INPUTS)
    )


def _repeated(history: History) -> Iterator[Finding]:
    """A repeated (source, id) is refused exactly once."""
    refused = _refused(history)
    for slot, entries in sorted(history.entries.items()):
        if slot[0] not in _INPUTS:
            continue
        seen: set[tuple[str, str]] = set()
        for entry in entries:
            if (entry.source, entry.id) in seen and not refused[entry.topic, entry.partition, entry.offset]:
                yield Finding(
                    DUPLICATED, entry.position, f"{entry.source} said {entry.id} twice, and it was taken"
                )
            seen.add((entry.source, entry.id))
    for (topic, partition, offset), count in sorted(refused.items()):
        if count > 1 and offset >= 0:
            yield Finding(DUPLICATED, f"{topic}/{partition}/{offset}", f"it was refused {count} times")


def _outputs(history: History, shards: dict[int, list[Step]]) -> Iterator[Finding]:
    """Each valid step has all its outputs once, and there are no other outputs."""
    expected = _valid(shards)
    written: dict[str, Counter[str]] = {name: Counter() for name in expected}
    for entry in history.of("decisions", "links", "works", "rejections", "clusters", "policies", "specs"):
        name, _, index = entry.id.rpartition("-")
        if not entry.source.startswith(_SHARD) or entry.kind == _STEP:
            continue
        if name not in written:
            yield Finding(STALE, entry.position, f"{entry.id} is of an invalid step")
            continue
        written[name][index] += 1
        number = history.numbering.number(entry.slot, entry.offset)
        after = history.numbering.number(expected[name].entry.slot, expected[name].entry.offset)
        if number and not after < number:
            yield Finding(DISORDERED, entry.position, f"it has number {number}, its step {after}")
        if written[name][index] > 1:
            yield Finding(DUPLICATED, entry.position, f"{entry.id} stands there twice")
    for name, step in expected.items():
        if len(written[name]) < step.said.get("outputs", 0):
            message = f"{len(written[name])} of its {step.said['outputs']} outputs are there"
            yield Finding(LOST, step.entry.position, message)


def _numbers(history: History) -> Iterator[Finding]:
    for where, message in history.numbering.wrong:
        yield Finding(DISORDERED, where, message)
    for slot, entries in sorted(history.entries.items()):
        for entry in entries:
            if not history.numbering.number(slot, entry.offset):
                yield Finding(UNSEEN, entry.position, "it has no number")


def _shown(history: History) -> Iterator[Finding]:
    """All replicas return the same objects, and these are the last writes in the log."""
    for entry in _last_writes(history):
        name = _name(entry)
        for index, shown in enumerate(history.shown):
            text = shown.get(name)
            is_right = text is None if entry.kind == "template-deleted" else _has_value(entry, text)
            if not is_right:
                yield Finding(UNSEEN, entry.position, f"replica {index} shows {text!r} for {name}")
    first, *others = history.shown or [{}]
    for index, shown in enumerate(others, 1):
        for name in sorted(first.keys() | shown.keys()):
            if first.get(name) != shown.get(name):
                texts = f"{first.get(name)!r} and {shown.get(name)!r}"
                yield Finding(UNSEEN, name, f"replicas 0 and {index} show {texts}")


def _name(entry: Entry) -> str:
    """Return the name of the template that a write is about."""
    data = entry.data
    return str(data.get("template", data.get("manifest", {}).get("metadata", {})).get("name", ""))


def _has_value(entry: Entry, text: str | None) -> bool:
    return text is not None and text.encode() in entry.value
