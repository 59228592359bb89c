"""Metrics of clusters, under Karmada's metric names, so that Karmada's dashboards and alerts work with them."""

from collections.abc import Iterable
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric

from engine.kubeapi.values import quantity
from projections.clusters import Cluster

_LABEL: Final = "member_cluster"
_NANO: Final = 10**9
_UNITS: Final = {"memory": "bytes", "cpu": "number", "pods": "number"}
"""The unit that a metric's name contains, by resource; for CPUs and pods it is ``number``."""


def of_clusters(clusters: Iterable[Cluster]) -> list[Metric]:
    """Return the metrics of clusters: whether they are ready, their nodes and their resources, as last reported.

    A figure that a cluster never reported is missing.
    """
    ready = _gauge("cluster_ready_state", "1 if the cluster is ready, else 0.")
    nodes = _gauge("cluster_node_number", "Nodes of the cluster.")
    nodes_ready = _gauge("cluster_ready_node_number", "Nodes of the cluster that are ready.")
    allocatable = _of_resources("allocatable", "that the nodes of the cluster offer")
    allocated = _of_resources("allocated", "that the pods of the cluster request")
    for cluster in clusters:
        labels = [cluster.name]
        ready.add_metric(labels, cluster.health is not None and cluster.health.status == "True")
        if cluster.capacity is None:
            continue
        if cluster.capacity.nodes is not None:
            nodes.add_metric(labels, cluster.capacity.nodes)
            nodes_ready.add_metric(labels, cluster.capacity.nodes_ready)
        for gauges, amounts in (
            (allocatable, cluster.capacity.allocatable),
            (allocated, cluster.capacity.allocated),
        ):
            for resource, gauge in gauges.items():
                if resource in amounts:
                    gauge.add_metric(labels, quantity.nano_units(amounts[resource]) / _NANO)
    return [ready, nodes, nodes_ready, *allocatable.values(), *allocated.values()]


def _of_resources(use: str, meaning: str) -> dict[str, GaugeMetricFamily]:
    return {
        resource: _gauge(
            f"cluster_{resource.removesuffix('s')}_{use}_{unit}",
            f"The {resource} {meaning}, in units or bytes.",
        )
        for resource, unit in _UNITS.items()
    }


def _gauge(name: str, meaning: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, meaning, labels=[_LABEL])
