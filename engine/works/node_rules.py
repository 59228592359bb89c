"""Which nodes take the pods of a template: its node selector and its tolerations."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from engine.kubeapi.values.taints import Effect
from engine.objects.placements import Toleration
from events.json_values import Json

UNSCHEDULABLE: Final = "node(s) were unschedulable"
_UNTOLERATED: Final = "node(s) had untolerated taint {{{}: {}}}"
_UNSELECTED: Final = "node(s) didn't match Pod's node affinity/selector"
_EFFECTS: Final = (Effect.NO_SCHEDULE, Effect.NO_EXECUTE)
_CORDON: Final = "node.kubernetes.io/unschedulable"


class NodeRules(Struct, frozen=True, gc=False):
    """Labels that a node must have, and the taints that the pods tolerate."""

    selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()

    def selects(self, labels: Mapping[str, object]) -> bool:
        return all(labels.get(name) == value for name, value in self.selector)

    def refusal(self, *, is_cordoned: bool, taints: Iterable[Json]) -> str:
        """Return kube-scheduler's reason why a cordon or taint keeps the pods off a node; empty if none does."""
        if is_cordoned and not self._tolerates(_CORDON, "", _EFFECTS[0]):
            return UNSCHEDULABLE
        for taint in taints:
            key, value, effect = (str(taint.get(field) or "") for field in ("key", "value", "effect"))
            if effect in _EFFECTS and not self._tolerates(key, value, effect):
                return _UNTOLERATED.format(key, value)
        return ""

    def first_refusal(
        self, labels: Mapping[str, object], *, is_cordoned: bool, taints: Iterable[Json]
    ) -> str:
        """Return the reason of ``refusal``, or else that the labels do not match; empty if the node takes the pods."""
        refusal = self.refusal(is_cordoned=is_cordoned, taints=taints)
        return refusal or ("" if self.selects(labels) else _UNSELECTED)

    def _tolerates(self, key: str, value: str, effect: str) -> bool:
        return any(toleration.tolerates(key, value, effect) for toleration in self.tolerations)


class _PodSpec(Struct, frozen=True, rename="camel"):
    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None


class _PodTemplate(Struct, frozen=True):
    spec: _PodSpec = _PodSpec()


_TEMPLATE: Final = msgspec.json.Decoder(_PodTemplate)
_MARKS: Final = (b'"nodeSelector"', b'"tolerations"')
ANY: Final = NodeRules()


def read(template: msgspec.Raw) -> NodeRules:
    """Return the rules of a pod template; if it can't be read, rules that allow every node."""
    if not any(mark in bytes(template) for mark in _MARKS):
        return ANY
    try:
        spec = _TEMPLATE.decode(template).spec
    except (msgspec.MsgspecError, RecursionError):
        return ANY
    return NodeRules(tuple(sorted((spec.node_selector or {}).items())), tuple(spec.tolerations or ()))
