"""Random WorkloadRebalancers for the templates of a scenario."""

import random
from collections.abc import Sequence

from events.json_values import Json, object_at, objects_at
from tests.builders import manifests
from tests.clusters.comparison import templates


def _workloads(rng: random.Random, namespace: str, candidates: Sequence[Json]) -> list[Json]:
    """Return references to templates; some do not exist."""
    chosen = rng.sample(candidates, min(len(candidates), rng.randint(1, 3)))
    if not chosen or rng.random() < 0.2:
        chosen.append(templates.template(rng, namespace, 99))
    references: list[Json] = []
    for value in chosen:
        metadata = object_at(value, "metadata")
        named: Json = {name: metadata[name] for name in ("name", "namespace") if name in metadata}
        references.append({"apiVersion": value["apiVersion"], "kind": value["kind"], **named})
    return references


def rebalancer(rng: random.Random, namespace: str, number: int, candidates: Sequence[Json]) -> Json:
    """Return a rebalancer for up to three of the templates."""
    spec: Json = {"workloads": _workloads(rng, namespace, candidates)}
    if rng.random() < 0.2:
        spec["ttlSecondsAfterFinished"] = rng.choice((0, 2))
    return manifests.manifest(
        manifests.REBALANCERS, "WorkloadRebalancer", f"{namespace}-r{number}", spec=spec
    )


def edited(rng: random.Random, value: Json) -> Json:
    """Return a rebalancer without some of its workloads, or with other names of them."""
    workloads = objects_at(object_at(value, "spec"), "workloads")
    kept = [workload for workload in workloads if rng.random() < 0.6]
    return {**value, "spec": {"workloads": kept or [{**workloads[0], "name": "deployment0"}]}}
