"""Finds in a log what must never be there, by rules of its own: it shares nothing with the engine that wrote the log.

=============  ==========================================================================================
lost           an acknowledged write that does not stand in the log; an input that no step took, or that its shard
               says nothing of; an output that a step names and that is nowhere
duplicated     two outputs of one step with the same index; an input that was said twice and taken twice
stale owner    a step that counts after a higher term began; a committed step, or an output, of an owner whose
               shard had gone on without him
non-monotonic  steps that leave a number out, take inputs back or go back in time; an order that does not join, or
               that shows a step before its inputs, or what a step gave before the step
unseen         a record without a number once all is quiet; an answered write that a replica does not show
=============  ==========================================================================================

A policy must select all Deployments, and nothing else: of what nobody places, a shard has nothing to say.
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
"""What only its shard takes, and takes at once; facts wait until a step has something to decide."""

_FACTS: Final = ("policies", "clusters")
_PLACED: Final = "-deployment"
"""How the keys of what the policy selects end."""

_SHARD: Final = "/reballast/shards/"
_STEP: Final = "step-taken"


class Finding(Struct, frozen=True, order=True):
    """Something that must not be, and where."""

    name: str
    where: str
    message: str


class Step(Struct):
    """A step as it stands in decisions: whether it follows the one before, and what its owner wrote behind it."""

    entry: Entry
    said: dict[str, Any]
    counts: bool


def check(history: History) -> list[Finding]:
    """All findings; none for a log that is right."""
    shards = {shard: _steps(history, shard) for shard in range(PARTITIONS["decisions"])}
    found = [*_acknowledged(history), *_repeated(history), *_numbers(history), *_shown(history)]
    for shard, steps in shards.items():
        found += [*_chain(shard, steps), *_order(history, shard, steps), *_taken(history, shard, steps)]
    return sorted([*found, *_outputs(history, shards), *_declared(history, _counting(shards))])


def names(found: Iterable[Finding]) -> list[str]:
    """The names of findings, each once."""
    return sorted({each.name for each in found})


def _steps(history: History, shard: int) -> list[Step]:
    """A shard's steps, each with whether it follows; terms are not asked for here."""
    found: list[Step] = []
    number, digest = 0, ""
    for entry in history.entries.get(("decisions", shard), ()):
        if entry.kind != _STEP:
            continue
        said = entry.data
        follows = said["number"] == number + 1 and said.get("previous", "") == digest
        if follows:
            number, digest = said["number"], hashlib.blake2b(entry.value, digest_size=16).hexdigest()
        found.append(Step(entry, said, follows))
    return found


def _chain(shard: int, steps: Sequence[Step]) -> Iterator[Finding]:
    number = term = 0
    for step in steps:
        place, said = step.entry.place, step.said
        if step.counts:
            if said["term"] < term:
                yield Finding(STALE, place, f"term {said['term']} goes on in shard {shard} after term {term}")
            number, term = said["number"], max(term, said["term"])
        elif said["number"] <= number:
            yield Finding(STALE, place, f"step {said['number']} of shard {shard} stands behind step {number}")
        else:
            yield Finding(
                DISORDERED, place, f"step {said['number']} of shard {shard} does not follow {number}"
            )


def _order(history: History, shard: int, steps: Sequence[Step]) -> Iterator[Finding]:
    """Time and inputs only go on; a step has its number after what it took."""
    before: dict[str, Any] = {"timeMs": 0, "ends": {}}
    for step in (each for each in steps if each.counts):
        place, said = step.entry.place, step.said
        if said["timeMs"] < before["timeMs"]:
            yield Finding(DISORDERED, place, "its time lies before that of the step before")
        number = history.numbering.number(step.entry.slot, step.entry.offset)
        for topic, end in said["ends"].items():
            if end < before["ends"].get(topic, 0):
                yield Finding(DISORDERED, place, f"{topic} is taken back to {end}")
            last = history.numbering.number((topic, 0 if topic in _FACTS else shard), end - 1) if end else 0
            if number and not last < number:
                yield Finding(DISORDERED, place, f"it has number {number}, its last of {topic} {last}")
        before = said


def _taken(history: History, shard: int, steps: Sequence[Step]) -> Iterator[Finding]:
    """Every input of the shard's own has its turn."""
    ends: dict[str, int] = {}
    for step in steps:
        ends = step.said["ends"] if step.counts else ends
    for topic in _OWN:
        for entry in history.entries.get((topic, shard), ()):
            if entry.offset >= ends.get(topic, 0):
                yield Finding(LOST, entry.place, "no step took it")


def _counting(shards: dict[int, list[Step]]) -> dict[str, Step]:
    """The steps that count, by what the ids of their outputs begin with."""
    return {
        f"{shard}-{step.said['term']}-{step.said['number']}": step
        for shard, steps in shards.items()
        for step in steps
        if step.counts
    }


def _declared(history: History, counting: Container[str]) -> Iterator[Finding]:
    """The last thing that a shard says of a template is of the last write that was not refused."""
    refused = _refused(history)
    said: dict[str, Entry] = {}
    declarations = [
        entry
        for entry in history.of("decisions")
        if entry.kind in {"binding-declared", "binding-withdrawn"} and entry.id.rpartition("-")[0] in counting
    ]
    for entry in declarations:
        said[entry.data["key"]] = entry
    for entry in _last_writes(history):
        last = said.get(entry.key)
        if entry.kind == "template-deleted":
            if last is not None and last.kind != "binding-withdrawn":
                yield Finding(LOST, entry.place, f"{entry.key} is deleted, and was not withdrawn")
        elif last is None or last.data.get("offset", 0) != entry.offset:
            yield Finding(LOST, entry.place, f"{entry.key} was written, and its shard does not say so")
    for entry in declarations:
        if entry.kind == "binding-declared":
            place = ("specs", entry.partition, entry.data.get("offset", 0))
            if refused[place]:
                yield Finding(DUPLICATED, entry.place, "it declares what was refused")


def _last_writes(history: History) -> list[Entry]:
    """The last write of each Deployment that was not refused."""
    refused = _refused(history)
    last: dict[str, Entry] = {}
    for entry in history.of("specs"):
        is_placed = entry.kind.startswith("template-") and entry.key.endswith(_PLACED)
        if is_placed and not refused[entry.topic, entry.partition, entry.offset]:
            last[entry.key] = entry
    return list(last.values())


def _refused(history: History) -> Counter[tuple[str, int, int]]:
    """How often a position was refused."""
    said = [entry.data for entry in history.of("rejections")]
    return Counter((each.get("topic", ""), each.get("partition", 0), each.get("offset", -1)) for each in said)


def _acknowledged(history: History) -> Iterator[Finding]:
    standing = {(*slot, each.offset): each for slot, entries in history.entries.items() for each in entries}
    for each in history.acknowledged:
        position = each.position
        if position is None and (found := history.numbering.position(each.number)) is not None:
            position = (*found[0], found[1])
        entry = standing.get(position) if position else None
        if position is None:
            yield Finding(UNSEEN, f"number {each.number}", f"{each.text} has a number that stands nowhere")
        elif (entry is None or not _has(entry, each.text)) and not _stands_before(history, each):
            yield Finding(LOST, "/".join(map(str, position)), f"{each.text} was acknowledged here")


def _has(entry: Entry, text: str) -> bool:
    return text.encode() in entry.id.encode() + entry.value


def _stands_before(history: History, known: Acknowledged) -> bool:
    """Whether an input with the text has a number up to the one that was answered.

    A client of the Kubernetes API gets the object's number, which a later record of the same object may have moved.
    """
    return known.position is None and any(
        _has(entry, known.text) and 0 < history.numbering.number(entry.slot, entry.offset) <= known.number
        for entry in history.of(*_INPUTS)
    )


def _repeated(history: History) -> Iterator[Finding]:
    """Who says a thing again is refused, once."""
    refused = _refused(history)
    for slot, entries in sorted(history.entries.items()):
        if slot[0] not in _INPUTS:
            continue
        seen: set[tuple[str, str]] = set()
        for entry in entries:
            if (entry.source, entry.id) in seen and not refused[entry.topic, entry.partition, entry.offset]:
                yield Finding(
                    DUPLICATED, entry.place, f"{entry.source} said {entry.id} twice, and it was taken"
                )
            seen.add((entry.source, entry.id))
    for (topic, partition, offset), count in sorted(refused.items()):
        if count > 1 and offset >= 0:
            yield Finding(DUPLICATED, f"{topic}/{partition}/{offset}", f"it was refused {count} times")


def _outputs(history: History, shards: dict[int, list[Step]]) -> Iterator[Finding]:
    """Each step that counts has its outputs, each once, and nobody else has any."""
    expected = _counting(shards)
    written: dict[str, Counter[str]] = {name: Counter() for name in expected}
    for entry in history.of("decisions", "links", "works", "rejections", "clusters", "policies", "specs"):
        name, _, index = entry.id.rpartition("-")
        if not entry.source.startswith(_SHARD) or entry.kind == _STEP:
            continue
        if name not in written:
            yield Finding(STALE, entry.place, f"{entry.id} is of a step that does not count")
            continue
        written[name][index] += 1
        number = history.numbering.number(entry.slot, entry.offset)
        after = history.numbering.number(expected[name].entry.slot, expected[name].entry.offset)
        if number and not after < number:
            yield Finding(DISORDERED, entry.place, f"it has number {number}, its step {after}")
        if written[name][index] > 1:
            yield Finding(DUPLICATED, entry.place, f"{entry.id} stands there twice")
    for name, step in expected.items():
        if len(written[name]) < step.said.get("outputs", 0):
            message = f"{len(written[name])} of its {step.said['outputs']} outputs are there"
            yield Finding(LOST, step.entry.place, message)


def _numbers(history: History) -> Iterator[Finding]:
    for where, message in history.numbering.wrong:
        yield Finding(DISORDERED, where, message)
    for slot, entries in sorted(history.entries.items()):
        for entry in entries:
            if not history.numbering.number(slot, entry.offset):
                yield Finding(UNSEEN, entry.place, "it has no number")


def _shown(history: History) -> Iterator[Finding]:
    """All replicas show one thing: what the log says last."""
    for entry in _last_writes(history):
        name = _name(entry)
        for index, shown in enumerate(history.shown):
            text = shown.get(name)
            is_right = text is None if entry.kind == "template-deleted" else _says(entry, text)
            if not is_right:
                yield Finding(UNSEEN, entry.place, f"replica {index} shows {text!r} for {name}")
    first, *others = history.shown or [{}]
    for index, shown in enumerate(others, 1):
        for name in sorted(first.keys() | shown.keys()):
            if first.get(name) != shown.get(name):
                told = f"{first.get(name)!r} and {shown.get(name)!r}"
                yield Finding(UNSEEN, name, f"replicas 0 and {index} show {told}")


def _name(entry: Entry) -> str:
    """The name of the template that a write is of."""
    said = entry.data
    return str(said.get("template", said.get("manifest", {}).get("metadata", {})).get("name", ""))


def _says(entry: Entry, text: str | None) -> bool:
    return text is not None and text.encode() in entry.value
