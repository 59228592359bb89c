"""Validation of PodDisruptionBudgets, from the published Kubernetes API."""

from collections.abc import Iterator

from engine.kubeapi.errors import causes
from engine.kubeapi.errors import messages as words
from engine.kubeapi.errors.status_objects import Cause
from events.kube_objects import KubeObject


def disruption_budget(value: KubeObject, _live: KubeObject | None) -> Iterator[Cause]:
    spec = value.object_at("spec")
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        shown = {
            "MinAvailable": least,
            "Selector": spec.get("selector"),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        yield causes.whole("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for name, limit in (("minAvailable", least), ("maxUnavailable", most)):
        yield from words.amount(limit, f"spec.{name}")
        yield from words.at_most_all(limit, f"spec.{name}")
    yield from words.selector(spec.get("selector"), "spec.selector")
    yield from words.one_of(spec, "unhealthyPodEvictionPolicy", "spec", ("AlwaysAllow", "IfHealthyBudget"))
