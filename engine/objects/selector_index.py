"""The resource selectors of one policy, indexed: a lookup for a template evaluates only selectors that may match.

A selector is stored under its scope (namespace, API version, kind) and its index key. The index key is the
narrowest property that all matching templates share: a name, one label with one value, or none.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Protocol

from msgspec import Struct

from engine.kubeapi.values import selectors
from engine.kubeapi.values.selectors import LabelSelector, Operator, Requirement
from engine.objects.policies import ResourceSelector
from events import shapes
from events.kube_objects import KubeObject

BY_NAME: Final = 3
BY_LABELS: Final = 2
BY_KIND: Final = 1
UNSELECTED: Final = 0

ANY: Final = ""

Scope = tuple[str, str, str]
"""Namespace, API version and kind, each ``ANY`` for all. A plain tuple for speed: each lookup makes several."""

IndexKey = tuple[int, str, str]
"""Closeness (``BY_NAME``, the narrowest, ``BY_LABELS`` or ``BY_KIND``), then the name, or the label's key and value."""

OF_KIND: Final[IndexKey] = (BY_KIND, "", "")
OF_LABELS: Final[IndexKey] = (BY_LABELS, "", "")
"""Index key of a label selector without ``matchLabels`` and without an ``In`` requirement."""


class Template(Protocol):
    """The fields that selectors read of a template; the namespace is empty for a cluster-scoped one."""

    @property
    def ref(self) -> shapes.WorkloadRef:
        """Kind, namespace and name of the template."""
        ...

    @property
    def labels(self) -> Mapping[str, str]: ...


class _ObjectTemplate(Struct, frozen=True):
    ref: shapes.WorkloadRef
    labels: Mapping[str, str]


def template_of(value: KubeObject) -> Template:
    """Return the fields of an object that selectors read."""
    ref = shapes.WorkloadRef(
        api_version=value.api_version, kind=value.kind, name=value.name, namespace=value.namespace
    )
    return _ObjectTemplate(ref, {name: str(text) for name, text in value.labels.items()})


class _Labels:
    def __init__(self, selector: LabelSelector) -> None:
        self._equal = tuple(selector.match_labels.items())
        self._conditions = tuple(
            (requirement.key, requirement.operator, frozenset(requirement.values))
            for requirement in selector.match_expressions
        )

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(key) == value for key, value in self._equal) and all(
            selectors.is_met(operator, labels.get(key), values) for key, operator, values in self._conditions
        )


Cell = list[_Labels | None]
"""Selectors of a policy with one scope and index key: compiled labels, or None to match all templates of the key."""

_Cells = dict[IndexKey, Cell]


class Selection:
    """The resource selectors of one policy."""

    def __init__(self, selectors: Iterable[ResourceSelector]) -> None:
        self._scopes: dict[Scope, _Cells] = {}
        for selector in selectors:
            by_labels = None if selector.name else selector.label_selector
            compiled = _Labels(by_labels) if by_labels is not None else None
            cells = self._scopes.setdefault(scope_of(selector.namespace, selector), {})
            for index_key in index_keys(selector):
                entries = cells.setdefault(index_key, [])
                # The entry None matches every template with this index key, so one such entry is enough.
                if compiled is not None or None not in entries:
                    entries.append(compiled)

    def cells(self) -> Iterator[tuple[Scope, IndexKey, Cell]]:
        """Yield all selectors by scope and index key; a template matches only those with its own scopes and keys."""
        return (
            (scope, index_key, cell)
            for scope, cells in self._scopes.items()
            for index_key, cell in cells.items()
        )

    def selects(self, template: Template) -> bool:
        for scope in scopes_of(template):
            cells = self._scopes.get(scope, {})
            for index_key in template_index_keys(template) if cells else ():
                if index_key in cells and is_met(cells[index_key], template):
                    return True
        return False


NO_SELECTION: Final = Selection(())


def is_met(cell: Cell, template: Template) -> bool:
    """Whether a selector of the cell matches a template that has the cell's index key."""
    return any(selector is None or selector.matches(template.labels) for selector in cell)


def scopes_of(template: Template) -> Iterator[Scope]:
    """Yield all scopes to which a template belongs."""
    namespace = template.ref.namespace
    for scope_namespace in (namespace, ANY) if namespace else (ANY,):
        yield scope_of(scope_namespace, template.ref)
        yield scope_namespace, ANY, ANY


def scope_of(namespace: str, ref: shapes.WorkloadRef | ResourceSelector) -> Scope:
    """Return the scope for the kind of ``ref`` and a namespace."""
    return (namespace, ref.api_version, ref.kind)


def template_index_keys(template: Template) -> Iterator[IndexKey]:
    """Yield the index keys of a template, the closest first."""
    yield BY_NAME, template.ref.name, ""
    for key, value in template.labels.items():
        yield BY_LABELS, key, value
    yield OF_LABELS
    yield OF_KIND


def index_keys(selector: ResourceSelector) -> tuple[IndexKey, ...]:
    """Return the index keys of a selector; each template that it matches has at least one of them."""
    if selector.name:
        return ((BY_NAME, selector.name, ""),)
    if selector.label_selector is not None:
        for requirement in selector.label_selector.requirements():
            if requirement.operator == Operator.IN:
                return _labels(requirement)
        return (OF_LABELS,)
    return (OF_KIND,)


def _labels(requirement: Requirement) -> tuple[IndexKey, ...]:
    return tuple((BY_LABELS, requirement.key, value) for value in sorted(set(requirement.values)))
