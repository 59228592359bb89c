"""HorizontalPodAutoscalers: the number of replicas for a load, by the published algorithm of Kubernetes.

Stabilization windows and scaling policies are left out, since they need measurements over time.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Struct

from engine.kubeapi.values import quantity
from events.json_values import Json, object_at, objects_at

KIND: Final = "HorizontalPodAutoscaler"
LOAD: Final = "simulation.reballast.io/load"
"""Annotation of a workload: what all its pods use together, such as ``1500m`` (cpu) or ``cpu=2,requests=300``."""

_CPU: Final = "cpu"
PERCENT: Final = 100
_TOLERANCE: Final = 10
"""A load within a tenth of the target changes nothing, as in Kubernetes."""

_DEFAULT_SHARE: Final = 80
_SOURCES: Final = {
    "Resource": ("resource",),
    "ContainerResource": ("containerResource",),
    "Pods": ("pods", "metric"),
    "Object": ("object", "metric"),
    "External": ("external", "metric"),
}
"""By type of a metric: the path to the object with its name; the first object on the path has the ``target``."""

RESOURCES: Final = ("Resource", "ContainerResource")


class Metric(Struct, frozen=True, gc=False):
    """A metric and its target for each pod: a share of the pod's request in percent, or an amount in billionths.

    ``source`` is its type; a metric without a share and an amount is not followed.
    """

    source: str
    name: str
    share: int | None = None
    average: int | None = None

    def target(self, requests: Mapping[str, int]) -> int:
        """Return what one pod should use, in billionths; 0 if that is unknown."""
        if self.share is not None:
            return requests.get(self.name, 0) * self.share // PERCENT
        return self.average or 0


class Scaler(Struct, frozen=True):
    """The workload that an autoscaler scales, the limits of its replicas, and the metrics that are followed."""

    target_kind: str
    target_name: str
    least: int
    most: int
    metrics: tuple[Metric, ...]

    def followed(self, load: Mapping[str, int], requests: Mapping[str, int]) -> list[Metric]:
        """Return the metrics whose load and target are known."""
        return [metric for metric in self.metrics if metric.name in load and metric.target(requests) > 0]

    def desired_replicas(self, count: int, load: Mapping[str, int], requests: Mapping[str, int]) -> int:
        """Return the number of replicas for the load, before the limits apply; ``count`` if no metric is followed."""
        counts = [
            _replicas_for_load(count, load[metric.name], metric.target(requests))
            for metric in self.followed(load, requests)
        ]
        return max(counts, default=count)

    def limited(self, count: int) -> int:
        """Return ``count``, bounded by the autoscaler's limits."""
        return min(max(count, self.least), self.most)


def read(manifest: bytes | msgspec.Raw) -> Scaler | None:
    """Return the autoscaler in an autoscaling/v2 manifest; None if it can't be read."""
    try:
        spec = object_at(msgspec.json.decode(manifest), "spec")
    except (msgspec.MsgspecError, RecursionError):
        return None
    target, least, most = (
        object_at(spec, "scaleTargetRef"),
        spec.get("minReplicas", 1),
        spec.get("maxReplicas"),
    )
    if not isinstance(least, int) or not isinstance(most, int):
        return None
    default = [Metric("Resource", _CPU, share=_DEFAULT_SHARE)]
    metrics = [_metric(metric) for metric in objects_at(spec, "metrics")] or default
    return Scaler(str(target.get("kind", "")), str(target.get("name", "")), least, most, tuple(metrics))


def load_in(text: str) -> dict[str, int] | None:
    """Return a load by metric, in billionths; a quantity alone is cpu. None if the text is malformed."""
    load: dict[str, int] = {}
    for item in text.split(",") if text else ():
        name, _, amount = item.rpartition("=")
        nano = quantity.nano_units_of(amount.strip())
        if nano is None or nano < 0:
            return None
        load[name.strip() or _CPU] = nano
    return load


def _metric(value: Json) -> Metric:
    source = str(value.get("type", ""))
    source_fields = object_at(value, *_SOURCES.get(source, ("",)))
    target = object_at(value, *_SOURCES.get(source, ("",))[:1], "target")
    share = target.get("averageUtilization")
    average = quantity.nano_units_of(target.get("averageValue"))
    return Metric(
        source, str(source_fields.get("name", "")), share if isinstance(share, int) else None, average
    )


def _replicas_for_load(count: int, load: int, target: int) -> int:
    expected = count * target
    return count if abs(load - expected) * _TOLERANCE <= expected else -(-load // target)
