"""The resource selectors of one policy, indexed: asking for one template does not ask each selector.

A selector is stored under its scope (namespace, API version, kind) and under a handle: the narrowest thing that a
template must have for it, which is its name, one label with one value, or nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Protocol

from engine.objects.policies import ResourceSelector
from engine.objects.selectors import LabelSelector, Requirement
from events import shapes

BY_NAME: Final = 3
BY_LABELS: Final = 2
BY_KIND: Final = 1
UNSELECTED: Final = 0

ANY: Final = ""

Scope = tuple[str, str, str]
"""Namespace, API version and kind, each ``ANY`` for all. Plain tuples: several are made for each lookup."""

Handle = tuple[int, str, str]
"""How closely it selects, and the name, or the key and value of the label."""

OF_KIND: Final[Handle] = (BY_KIND, "", "")
OF_LABELS: Final[Handle] = (BY_LABELS, "", "")
"""Of a label selector that requires no label to have one of some values."""

_IN: Final = "In"


class Template(Protocol):
    """What matching reads of a template; the namespace of a cluster-scoped one is empty."""

    @property
    def ref(self) -> shapes.WorkloadRef:
        """Kind, namespace and name."""
        ...

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        ...


class _Labels:
    """A label selector, compiled."""

    def __init__(self, selector: LabelSelector) -> None:
        self._equal = tuple(selector.match_labels.items())
        self._conditions = tuple(
            (each.key, each.operator, frozenset(each.values)) for each in selector.match_expressions
        )

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether a template's labels satisfy all conditions."""
        return all(labels.get(key) == value for key, value in self._equal) and all(
            _is_met(labels.get(key), operator, values) for key, operator, values in self._conditions
        )


Cell = list[_Labels | None]
"""The selectors of a policy with one scope and handle; None for one that the handle alone satisfies."""

_Cells = dict[Handle, Cell]


class Selection:
    """What one policy selects."""

    def __init__(self, selectors: Iterable[ResourceSelector]) -> None:
        self._scopes: dict[Scope, _Cells] = {}
        for selector in selectors:
            by_labels = None if selector.name else selector.label_selector
            compiled = _Labels(by_labels) if by_labels is not None else None
            cells = self._scopes.setdefault(scope_of(selector.namespace, selector), {})
            for handle in handles(selector):
                entries = cells.setdefault(handle, [])
                # Of several that select all with this handle one is enough.
                if compiled is not None or None not in entries:
                    entries.append(compiled)

    def cells(self) -> Iterator[tuple[Scope, Handle, Cell]]:
        """All selectors; a template that one of them selects has its scope and its handle."""
        return (
            (scope, handle, cell) for scope, cells in self._scopes.items() for handle, cell in cells.items()
        )

    def closeness(self, template: Template) -> int:
        """How closely the best of the selectors selects a template, ``UNSELECTED`` for not at all."""
        return max((self._closest(cells, template) for cells in self._cells(template)), default=UNSELECTED)

    def selects(self, template: Template) -> bool:
        """Whether one of the selectors selects a template."""
        return any(self._closest(cells, template) for cells in self._cells(template))

    def _cells(self, template: Template) -> Iterator[_Cells]:
        for scope in scopes_of(template):
            cells = self._scopes.get(scope)
            if cells is not None:
                yield cells

    @staticmethod
    def _closest(cells: _Cells, template: Template) -> int:
        for handle in handles_of(template):
            if handle in cells and is_met(cells[handle], template):
                return handle[0]
        return UNSELECTED


def is_met(cell: Cell, template: Template) -> bool:
    """Whether a selector with a handle of the template selects it."""
    return any(each is None or each.matches(template.labels) for each in cell)


def scopes_of(template: Template) -> Iterator[Scope]:
    """All scopes that a template is in."""
    namespace = template.ref.namespace
    for place in (namespace, ANY) if namespace else (ANY,):
        yield scope_of(place, template.ref)
        yield place, ANY, ANY


def scope_of(namespace: str, ref: shapes.WorkloadRef | ResourceSelector) -> Scope:
    """The scope of what has this kind in a namespace."""
    return (namespace, ref.api_version, ref.kind)


def handles_of(template: Template) -> Iterator[Handle]:
    """The handles of a template, the closest first."""
    yield BY_NAME, template.ref.name, ""
    for key, value in template.labels.items():
        yield BY_LABELS, key, value
    yield OF_LABELS
    yield OF_KIND


def handles(selector: ResourceSelector) -> tuple[Handle, ...]:
    """Where a selector is stored: a template that it selects has at least one of these handles."""
    if selector.name:
        return ((BY_NAME, selector.name, ""),)
    if selector.label_selector is not None:
        for requirement in selector.label_selector.requirements():
            if requirement.operator == _IN:
                return _labels(requirement)
        return (OF_LABELS,)
    return (OF_KIND,)


def _labels(requirement: Requirement) -> tuple[Handle, ...]:
    return tuple((BY_LABELS, requirement.key, value) for value in sorted(set(requirement.values)))


def _is_met(value: str | None, operator: str, values: frozenset[str]) -> bool:
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False
