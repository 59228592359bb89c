"""The index of workload groups compared with Karmada's filter, which lists the bindings of a group for each cluster."""

import random

import msgspec
import pytest

from engine.observer.group_index import GroupIndex
from engine.observer.observed_bindings import ObservedBinding, read_binding
from tests.rounds import ROUNDS

CLUSTERS = ("east", "north", "south", "west")
TEXTS = ("", "", "app=a", "app=b")


def drawn(
    rng: random.Random, namespace: str, name: str, groups: dict[str, str] | None = None
) -> ObservedBinding:
    """Return a binding with random clusters, and with random groups unless they are given."""
    clusters = rng.sample(CLUSTERS, rng.choice((0, 0, 1, 2, 3)))
    manifest = {
        "metadata": {"namespace": namespace, "name": name, "uid": "1", "resourceVersion": "1"},
        "spec": {
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment"},
            "clusters": [{"name": cluster} for cluster in clusters],
            "workloadAffinityGroups": groups
            or rng.choice(
                (None, {"affinityGroup": rng.choice(TEXTS), "antiAffinityGroup": rng.choice(TEXTS)})
            ),
        },
    }
    return read_binding(msgspec.json.encode(manifest))


def is_allowed(binding: ObservedBinding, others: list[ObservedBinding], cluster: str) -> bool:
    """Whether the other workloads of the binding's groups allow a cluster, one by one as in Karmada's filters."""
    groups = binding.spec.workload_affinity_groups
    for other in others:
        other_groups = other.spec.workload_affinity_groups
        if groups is None or other_groups is None or not other.placed:
            continue
        is_together = groups.affinity_group and groups.affinity_group == other_groups.affinity_group
        is_apart = (
            groups.anti_affinity_group and groups.anti_affinity_group == other_groups.anti_affinity_group
        )
        if (is_together and cluster not in other.placed) or (is_apart and cluster in other.placed):
            return False
    return True


@pytest.mark.parametrize("seed", range(5 * ROUNDS))
def test_restrictions_are_those_of_all_other_bindings_of_the_groups(seed: int) -> None:
    rng, index = random.Random(seed), GroupIndex()  # noqa: S311  # an example, not a secret
    bindings: dict[tuple[str, str], ObservedBinding] = {}
    names = [(namespace, f"web{number}") for namespace in ("blue", "red") for number in range(5)]
    for _ in range(200):
        key = rng.choice(names)
        if rng.random() < 0.2:
            bindings.pop(key, None)
            index.remove(*key)
        else:
            bindings[key] = drawn(rng, *key)
            index.put(bindings[key])
        for binding in bindings.values():
            namespace = binding.metadata.namespace
            others = [
                other
                for other in bindings.values()
                if other is not binding and other.metadata.namespace == namespace
            ]
            apart, together = index.restrictions(binding)
            allowed = {
                cluster
                for cluster in CLUSTERS
                if cluster not in apart and (together is None or cluster in together)
            }
            assert allowed == {cluster for cluster in CLUSTERS if is_allowed(binding, others, cluster)}


@pytest.mark.parametrize("seed", range(5 * ROUNDS))
def test_earlier_restrictions_are_those_before_each_change(seed: int) -> None:
    rng, index = random.Random(seed), GroupIndex()  # noqa: S311  # an example, not a secret
    binding = drawn(rng, "blue", "web", {"affinityGroup": "app=a", "antiAffinityGroup": "app=b"})
    began, states = 0, [index.restrictions(binding)]
    for number in range(100):
        if number == 20:
            began, states = index.changes, [index.restrictions(binding)]
        name = f"web{rng.randrange(5)}"
        index.put(drawn(rng, "blue", name))
        if rng.random() < 0.2:
            index.remove("blue", name)
        states.append(index.restrictions(binding))
        assert set(states) <= {*index.earlier_restrictions(binding, began), states[-1]}
        assert index.restrictions(binding) == states[-1]
    assert index.earlier_restrictions(binding, index.changes) == []
