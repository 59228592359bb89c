"""An event type that is not in the catalogue cannot be written, and one that no module applies has no effect."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from events import catalogue, shapes
from tests.tidy import trees

_WITHOUT_EFFECT: Final = ("events/", "tests/", "engine/bench/", "engine/cli/")


def test_each_event_type_is_written_by_one_module_and_applied_by_another() -> None:
    users: defaultdict[str, set[str]] = defaultdict(set)
    for path in trees.modules():
        if not trees.name_of(path).startswith(_WITHOUT_EFFECT):
            for name in _names(path):
                users[name].add(trees.name_of(path))
    incomplete = {
        entry.name: sorted(users[entry.struct.__name__])
        for entry in catalogue.EVENT_TYPES
        # All events that carry an object are written at one place, by the table ``verdicts.APPLIED``.
        if len(users[entry.struct.__name__]) < (1 if issubclass(entry.struct, shapes.ObjectApplied) else 2)
    }
    assert not incomplete, (
        "write each in one module and apply it in another: 'How to add an event' in CONTRIBUTING.md"
    )


def test_each_event_without_subclasses_is_in_the_catalogue() -> None:
    missing = {struct.__name__ for struct in _events(shapes.Event)} - {
        entry.struct.__name__ for entry in catalogue.EVENT_TYPES
    }
    assert not missing, "decorate them with shapes.recorded, in a module that events/catalogue.py lists"


def _events(base: type[shapes.Event]) -> Iterator[type[shapes.Event]]:
    """Yield the events of the package ``events`` that derive from ``base`` and have no subclasses there."""
    derived = [struct for struct in base.__subclasses__() if struct.__module__.startswith("events.")]
    for struct in derived:
        yield from _events(struct)
    if not derived:
        yield base


def _names(path: Path) -> Iterator[str]:
    yield from (node.attr for node in trees.nodes(path, ast.Attribute))
    yield from (node.id for node in trees.nodes(path, ast.Name))
