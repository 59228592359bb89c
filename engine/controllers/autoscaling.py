"""Controllers for autoscalers in members: they label the autoscalers' targets and copy members' replicas to templates.

The target of a propagated HorizontalPodAutoscaler gets the label ``resourcetemplate.karmada.io/retain-replicas``,
so that members keep their number of replicas. The replicas of a Deployment with this label, if they are divided,
become the sum of what its members run. Label and replicas are written like a client's writes and computed from the
views: if several servers write, the first write wins and the others change nothing.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final, NamedTuple

from engine import diagnostics
from engine.controllers.controller import Access, Controller
from engine.domain import marks
from engine.kubeapi.patching import managed_fields
from engine.writing.edits.objects import Writer
from engine.writing.edits.patching import MERGE_PATCH, Patch
from engine.writing.mutations import Target
from engine.writing.object_changes import Change
from events.json_values import Json, object_at
from events.kube_objects import KubeObject
from projections import autoscaling, changes
from projections.autoscaling import ScaleTarget, Span, Template
from projections.port import Rows

MARKER: Final = "hpa-scale-target-marker"
"""Field manager of the label; only a label that this manager owns is removed."""

_SYNCER: Final = "deployment-replicas-syncer"
_DEPLOYMENT: Final = ("apps", "Deployment")
_TRUE: Final = "true"
_log = diagnostics.logger(__name__)


class _Write(NamedTuple):
    template: Template
    manager: str
    patch: Json


class Autoscaling(Controller):
    """Follows the views and writes templates; call ``run`` once."""

    SOURCE = "/reballast/autoscaling"
    ACTIVITY = "autoscaling"

    def __init__(self, access: Access) -> None:
        super().__init__(access)
        self._targets: dict[int, ScaleTarget] = {}

    async def turn(self, after: int) -> int:
        """Process the changes after a sequence number (all objects if negative); return the last one that is processed.

        Raises LogError and ProjectionError.
        """
        number, pending = await self._reads.peek(partial(self._read, after=after))
        for write in pending:
            await self._write(write)
        return number

    def _read(self, rows: Rows, after: int) -> tuple[int, list[_Write]]:
        number = changes.checkpoint(rows)
        span = Span(after, number) if after >= 0 and changes.is_kept(after, number) else None
        templates = [*self._follow_targets(rows, span), *autoscaling.retaining(rows, span)]
        if span is not None:
            kinds = sorted({target.kind for target in self._targets.values()})
            templates += autoscaling.of_kinds(rows, span, kinds)
        distinct = {template.target: template for template in templates}
        return number, list(_writes(distinct.values(), set(self._targets.values())))

    def _follow_targets(self, rows: Rows, span: Span | None) -> Iterator[Template]:
        """Update the set of autoscalers' targets, and yield the templates that became targets or are no longer ones.

        Without a span, rebuild the set and yield all targets. The caller then finds former targets by their label.
        """
        if span is None:
            # Autoscalers may have been deleted since the last turn.
            self._targets.clear()
        changed = set[int]() if span is None else autoscaling.changed(rows, span)
        former = {self._targets.pop(key_id) for key_id in changed if key_id in self._targets}
        new = autoscaling.scalers(rows, span)
        self._targets |= new
        for target in sorted(former ^ set(new.values())):
            yield from autoscaling.of_target(rows, target)

    async def _write(self, write: _Write) -> None:
        template = write.template
        catalogue = await self._objects.catalogue()
        resource = catalogue.of_kind(template.api_version, template.target.kind)
        if resource is None:
            return
        target = Target(
            api_version=template.api_version,
            kind=template.target.kind,
            namespace=template.target.namespace,
            name=template.target.name,
        )

        def patched(writer: Writer) -> Change:
            return Change(target=target, edit=Patch(writer, MERGE_PATCH, write.patch), resource=resource)

        if reason := await self.carry_out(resource, target, write.manager, patched):
            # Another client wrote first; the next turn processes its write like any other change.
            _log.info("template not written", kind=target.kind, name=target.name, reason=reason)


def _writes(templates: Iterable[Template], targets: set[ScaleTarget]) -> Iterator[_Write]:
    for template in templates:
        if template.target in targets and template.label != _TRUE:
            yield _Write(template, MARKER, _labelled(_TRUE))
        elif template.target not in targets and template.label == _TRUE and _is_own_label(template.value):
            yield _Write(template, MARKER, _labelled(None))
        elif template.decided not in (None, template.replicas) and _is_followed(template):
            metadata: Json = {"resourceVersion": str(template.number)}
            yield _Write(template, _SYNCER, {"metadata": metadata, "spec": {"replicas": template.decided}})


def _is_followed(template: Template) -> bool:
    return template.label == _TRUE and template.target[:2] == _DEPLOYMENT


def _labelled(text: str | None) -> Json:
    return {"metadata": {"labels": {marks.RETAIN_REPLICAS: text}}}


def _is_own_label(value: KubeObject) -> bool:
    """Whether the field manager ``MARKER`` owns the label."""
    return any(
        entry.get("manager") == MARKER
        and f"f:{marks.RETAIN_REPLICAS}" in object_at(entry, "fieldsV1", "f:metadata", "f:labels")
        for entry in managed_fields.entries(value)
    )
