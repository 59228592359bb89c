"""Warnings of writes beyond validation.

There are four warnings. A dry run of an object with the annotation ``ANNOTATION`` returns a forecast of its effect.
An edit of a template returns a warning if the claiming policy no longer selects the template. A write of a
CustomResourceDefinition returns a warning if another definition already defines its kind; a write of a policy or
rebalancer, if it names kinds that are not served.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import anyio
import anyio.to_thread
import msgspec

from engine.domain import marks
from engine.http.kube.control_plane import ControlPlane
from engine.http.services import Planner
from engine.kubeapi.schema import custom_kinds
from engine.kubeapi.schema.resources import Catalogue, control_plane
from engine.objects import policies, selector_index
from engine.overrides import policies as overrides
from engine.plans import summaries
from engine.plans.predictions import Prediction
from engine.plans.questions import Input, PlanError, Question
from engine.writing.mutations import Target
from engine.writing.write_api import WriteApi
from events import keys, shapes
from events.json_values import as_text
from events.kube_objects import KubeObject
from events.validation.known_kinds import APPS_GROUP, POLICY_GROUP

ANNOTATION: Final = "reballast.io/plan"
RUNNING_MAX: Final = 2
_TIMEOUT_S: Final = 25
"""Time limit of a prediction in seconds; clients of the Kubernetes API give up after 30 seconds or more."""

_NAMING_KINDS: Final = {
    **dict.fromkeys(
        ((POLICY_GROUP, kind) for kind in (*policies.KINDS, *overrides.KINDS)), "resourceSelectors"
    ),
    (APPS_GROUP, "WorkloadRebalancer"): "workloads",
}
"""For each kind of policy and rebalancer, the field of its spec whose entries name an apiVersion and a kind."""

_BUSY: Final = "plan: too many plans are running; try again"


async def of_kinds(plane: ControlPlane, value: KubeObject) -> tuple[str, ...]:
    """Return warnings about the kinds that an object defines, or names as kinds of other objects."""
    if value.type_meta == custom_kinds.DEFINITION:
        return _of_definition(await plane.catalogue(), value)
    if (field := _NAMING_KINDS.get(value.type_meta)) is not None:
        return tuple(_of_named_kinds(await plane.catalogue(), value, field))
    return ()


def _of_named_kinds(catalogue: Catalogue, value: KubeObject, field: str) -> Iterator[str]:
    for index, entry in enumerate(value.objects_at("spec", field)):
        api_version, kind = as_text(entry.get("apiVersion")), as_text(entry.get("kind"))
        if catalogue.of_kind(api_version, kind) is None:
            reason = f"this server has no kind {kind} of {api_version}; check apiVersion and kind"
            yield f"spec.{field}[{index}] has no effect: {reason}"


def _of_definition(catalogue: Catalogue, definition: KubeObject) -> tuple[str, ...]:
    """Return a warning if a stored CustomResourceDefinition is not served: another resource has its kind."""
    group, kind = definition.text_at("spec", "group"), definition.text_at("spec", "names", "kind")
    plural = definition.text_at("spec", "names", "plural")
    for version in definition.objects_at("spec", "versions"):
        served = catalogue.of_kind(f"{group}/{version.get('name')}", kind)
        if served is not None and served.plural != plural:
            return (f"{plural}.{group} is not served: {served.qualified} has the kind {kind} already",)
    return ()


class Forecasts:
    """Warnings with the predicted effect of a dry run; the number of concurrent predictions is bounded."""

    def __init__(self, write_api: WriteApi, planner: Planner, clock_ms: Callable[[], int]) -> None:
        self._write_api = write_api
        self._planner = planner
        self._clock_ms = clock_ms
        self._running = 0

    async def warnings(
        self, value: KubeObject, target: Target, events: Sequence[shapes.Event], source: str
    ) -> tuple[str, ...]:
        """Return a warning with the predicted effect of ``events``, which write ``value``.

        Return no warning if the object does not have the annotation ``ANNOTATION``.
        """
        if value.annotations.get(ANNOTATION) != "true":
            return ()
        if self._running == RUNNING_MAX:
            return (_BUSY,)
        self._running += 1
        try:
            with anyio.fail_after(_TIMEOUT_S):
                return (f"plan: {await self._summary(target, events, source)}",)
        except TimeoutError:
            return (f"plan: not finished after {_TIMEOUT_S} s; use reballast plan",)
        except PlanError as error:
            return (f"plan: {error}",)
        finally:
            self._running -= 1

    async def _summary(self, target: Target, events: Sequence[shapes.Event], source: str) -> str:
        records = self._write_api.records_of(target, events, source)
        inputs = tuple(Input(record=record) for record in records)
        question = Question(began_ms=self._clock_ms(), inputs=inputs)
        encoded = await self._planner.predict(question, lambda _: None)
        prediction = await anyio.to_thread.run_sync(_decode, encoded)
        return summaries.summary(prediction)


_decode: Final = msgspec.json.Decoder(Prediction).decode


class Relabelling:
    """Records whether an edit changed labels; if so, ``warnings`` reads the policy that claims the object."""

    def __init__(self) -> None:
        self._is_found = False

    def __call__(self, value: KubeObject, before: KubeObject | None) -> KubeObject:
        """Return ``value`` unchanged, and record whether its labels differ from those of ``before``."""
        self._is_found = before is not None and value.labels != before.labels
        return value

    async def warnings(self, plane: ControlPlane, value: KubeObject) -> tuple[str, ...]:
        """Return a warning if the labels were changed and the claiming policy no longer selects the template."""
        policy = marks.claiming_policy(value.annotations) if self._is_found else None
        resource = None if policy is None else control_plane().of_kind(POLICY_GROUP, policy.kind)
        if policy is None or resource is None:
            return ()
        stored = await plane.current(resource, policy.namespace, policy.name)
        if stored is None:
            return ()
        template = selector_index.template_of(value)
        selectors = policies.decode(msgspec.json.encode(stored.document)).selectors
        if selector_index.Selection(selectors).selects(template):
            return ()
        name = keys.full_name(policy.namespace, policy.name)
        kept = f"this {template.ref.kind}, which keeps its placement until that policy is changed or deleted"
        return (f"{policy.kind} {name} no longer selects {kept}",)
