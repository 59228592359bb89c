"""Reads of the control plane API: its kinds, and its objects from the views.

A read first samples the log's end and waits until the views have folded it, so clients read their own writes
on any replica; with resourceVersion "0" it returns what the views have. Bootstrap objects are not in the log and
are merged into the results.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from engine.http.kube import bootstrap_objects
from engine.http.kube.bootstrap_objects import BootstrapObjects
from engine.http.kube.derived_fields import DerivedFields
from engine.http.kube.kubernetes_events.lists import Events
from engine.http.kube.requests import ObjectFilter, Query
from engine.kubeapi.schema import custom_kinds
from engine.kubeapi.schema.resources import ApiPath, Catalogue, Resource, control_plane
from engine.writing.read_side import ReadSide
from events.json_values import DECODING_ERRORS
from events.kube_objects import KubeObject
from events.validation import known_kinds as kinds
from projections import changes, object_tables, objects
from projections.port import Rows

_DEFINITION: Final = object_tables.Kind(*custom_kinds.DEFINITION)
METRICS: Final = "metrics.k8s.io"
Figures = Callable[[Resource, str, ObjectFilter], Awaitable[list[KubeObject]]]
"""Returns resource metrics of members' nodes or pods, given the metrics kind, a namespace (empty: all) and a filter."""


class Listed(msgspec.Struct, frozen=True):
    """One page: objects, continue token, sequence number of the views, and the number of objects after the page."""

    items: list[KubeObject]
    after: str
    number: int
    left: int = 0


class _Kinds(NamedTuple):
    """The served kinds as of a sequence number; ``mark`` changes when any CustomResourceDefinition changes."""

    number: int
    mark: tuple[int, int]
    catalogue: Catalogue


class ControlPlane:
    """Read objects and kinds for the API.

    ``figures`` returns the metrics of the members; ``planned`` the CustomResourceDefinitions that a plan adds.
    """

    def __init__(
        self,
        reads: ReadSide,
        bootstrap: BootstrapObjects,
        derived_fields: DerivedFields,
        figures: Figures,
        planned: Callable[[], Sequence[bytes]] = tuple,
    ) -> None:
        self.reads = reads
        self._figures = figures
        self._planned = planned
        self.bootstrap = bootstrap
        self.rendered = derived_fields
        self.last_number = reads.log.last_number
        """Returns the newest sequence number that this server knows; its responses have no higher resourceVersion."""

        self.events = Events(reads)
        self._kinds = _Kinds(-1, (0, 0), control_plane())

    async def catalogue(self) -> Catalogue:
        """The kinds that are served now, including custom ones."""
        return await self._known_kinds(await self.reads.catch_up())

    async def resource(self, api_path: ApiPath) -> Resource | None:
        """The kind that a path names; None if it is unknown.

        Custom kinds need a read of the views; an unknown name also waits for the log, since its definition
        may just have been created on another replica.
        """
        name = api_path.group, api_path.version, api_path.plural
        if known := control_plane().resource(*name):
            return known
        known = (await self._known_kinds(self.reads.views.folded)).resource(*name)
        return known or (await self.catalogue()).resource(*name)

    async def newest(self) -> int:
        """Query the log for its newest sequence number and return it; the log's ``last_number`` is then up to date."""
        return await self.reads.log.newest()

    async def number(self) -> int:
        """The sequence number that the views have folded, after catching up with the log."""
        return await self.reads.read(changes.checkpoint)

    async def get(
        self, resource: Resource, namespace: str, name: str, *, is_fresh: bool = True
    ) -> KubeObject | None:
        """One object, None if there is none; ``is_fresh``: first catch up with the log."""
        if resource.is_event:
            return await self.events.named(resource, namespace, name)
        if resource.group == METRICS:
            fits = ObjectFilter(resource, Query(), name)
            return next(iter(await self._figures(resource, namespace, fits)), None)
        if is_empty(resource):
            return None
        if is_fresh:
            await self.reads.catch_up()
        return await self.current(resource, namespace, name)

    async def current(self, resource: Resource, namespace: str, name: str) -> KubeObject | None:
        """One object from the views, without catching up with the log; None if there is none.

        The views already include all writes that this server has answered.
        """
        value = self._stored(resource, namespace, name)
        if value is None:
            value = await self.bootstrap_object(resource, namespace, name)
        return value if value is None else self.rendered(resource, value)

    async def bootstrap_object(self, resource: Resource, namespace: str, name: str) -> KubeObject | None:
        """The bootstrap object of this name, None if there is none; a stored object may replace it."""
        if (resource.api_version, resource.kind) not in bootstrap_objects.KINDS:
            return None
        return await self.bootstrap.get(resource, namespace, name)

    async def is_bootstrap_object(self, resource: Resource, namespace: str, name: str) -> bool:
        """Whether an object is a bootstrap object that no stored object replaces."""
        value = await self.bootstrap_object(resource, namespace, name)
        return value is not None and self._stored(resource, namespace, name) is None

    async def listed(
        self,
        resource: Resource,
        namespace: str,
        fits: ObjectFilter,
        *,
        limit: int = 0,
        after: str = "",
        brief: bool = False,
        is_fresh: bool = True,
    ) -> Listed:
        """A page of the objects that fit; ``is_fresh``: first catch up with the log.

        With ``brief`` the objects have only the fields that a table shows. Raises ValueError if ``after`` is not a
        continue token.
        """
        if resource.is_event:
            events, number = await self.events.listed(resource, namespace, fits)
            return Listed(events, "", number)
        if resource.group == METRICS:
            used = await self._figures(resource, namespace, fits)
            return Listed(used, "", self.reads.views.folded)
        kind = object_tables.Kind(resource.api_version, resource.kind)
        if is_fresh:
            await self.reads.catch_up()

        def show(stored: KubeObject) -> KubeObject | None:
            value = self.rendered(resource, stored)
            return value if fits(value) else None

        selection = object_tables.Selection(kind=kind, namespace=namespace, brief=brief, show=show)
        has_others = kind in bootstrap_objects.KINDS
        if has_others:
            await self.bootstrap.prepare()

        def read_page(rows: Rows) -> Listed:
            number = changes.checkpoint(rows)
            if is_empty(resource):
                return Listed([], "", number)
            page = object_tables.page(rows, selection, limit=limit, after=after)
            if has_others:
                start = object_tables.start(after)
                others = self.bootstrap.listed(rows, resource, namespace, start=start[0])
                page = object_tables.with_others(
                    rows, kind, page, filter(fits, others), limit=limit, after=after
                )
            return Listed(page.items, page.after, number, page.left)

        return await self.reads.peek(read_page)

    def _stored(self, resource: Resource, namespace: str, name: str) -> KubeObject | None:
        """One stored object or None, read on the event loop: a thread switch takes ten times as long as the read."""
        kind = object_tables.Kind(resource.api_version, resource.kind)
        return self.reads.query(lambda rows: object_tables.get(rows, kind, namespace, name))

    async def _known_kinds(self, number: int) -> Catalogue:
        """The served kinds as of the sequence number ``number``, which the views have already folded."""
        if number > self._kinds.number:
            kinds = await self.reads.peek(self._read_kinds)
            # Another request may have read newer kinds meanwhile.
            if kinds.number > self._kinds.number:
                self._kinds = kinds
        catalogue = self._kinds.catalogue
        custom = [kind for definition in self._planned() for kind in _custom(definition)]
        return catalogue.with_custom(custom) if custom else catalogue

    def _read_kinds(self, rows: Rows) -> _Kinds:
        """Read the served kinds. Change nothing: several threads may run this at once."""
        known, number = self._kinds, changes.checkpoint(rows)
        mark = objects.mark_of_kind(rows, *_DEFINITION)
        if mark == known.mark:
            return _Kinds(number, mark, known.catalogue)
        # Of two definitions of one kind the older one, which is returned first, is served.
        definitions = objects.manifests(rows, *_DEFINITION)
        custom = [kind for definition in definitions for kind in _custom(definition.manifest)]
        return _Kinds(number, mark, control_plane().with_custom(custom))


def is_empty(resource: Resource) -> bool:
    """Whether the kind is served but never has objects, because the engine does not store it."""
    if any((kind.kind, kind.group) == (resource.kind, resource.group) for kind in kinds.DERIVED):
        return False
    return bool(kinds.refused(resource.api_version, resource.kind))


def _custom(manifest: bytes) -> Iterable[Resource]:
    """The kinds of a CustomResourceDefinition; none if it is invalid, about which its writer got a warning."""
    try:
        return custom_kinds.read(KubeObject.from_json(manifest))
    except DECODING_ERRORS:
        return ()
