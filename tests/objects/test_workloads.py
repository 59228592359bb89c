"""Replicas and requests of built-in kinds: Karmada's rules, by example."""

import msgspec
import pytest

from engine.objects import workloads
from engine.objects.workloads import NONE, Requests, Size
from events.json_values import Json


def container(**requests: str) -> Json:
    return {"name": "main", "resources": {"requests": requests}}


def pod(*containers: Json, **fields: object) -> Json:
    return {"containers": list(containers), **fields}


SMALL: Json = pod(container(cpu="100m", memory="1Gi"))
REQUIRED_NODES: Json = {
    "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
}
SMALL_NEEDS: Requests = (("cpu", "100m"), ("memory", "1Gi"))


@pytest.mark.parametrize(
    ("kind", "spec", "size"),
    [
        ("apps/v1 Deployment", {"replicas": 3, "template": {"spec": SMALL}}, Size(3, SMALL_NEEDS)),
        ("apps/v1 Deployment", {}, Size(1)),
        ("apps/v1 StatefulSet", {"replicas": 0, "template": {"spec": SMALL}}, Size(0, SMALL_NEEDS)),
        ("apps/v1 ReplicaSet", {"replicas": 4, "template": {"spec": SMALL}}, Size(4, SMALL_NEEDS)),
        # Requirements of the node are requirements too, even if the replica requests nothing.
        (
            "apps/v1 Deployment",
            {"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}},
            Size(1, (), node_claim=b'{"nodeSelector":{"disk":"ssd"}}'),
        ),
        (
            "apps/v1 Deployment",
            {"template": {"spec": {"tolerations": [{"operator": "Exists"}]}}},
            Size(1, (), node_claim=b'{"tolerations":[{"operator":"Exists"}]}'),
        ),
        (
            "apps/v1 StatefulSet",
            {"template": {"spec": {**SMALL, "affinity": REQUIRED_NODES}}},
            Size(1, SMALL_NEEDS, node_claim=b'{"hardNodeAffinity":{"nodeSelectorTerms":[]}}'),
        ),
        (
            "v1 Pod",
            pod(container(), container(), affinity=REQUIRED_NODES),
            Size(1, (), node_claim=b'{"hardNodeAffinity":{"nodeSelectorTerms":[]}}'),
        ),
        ("apps/v1 Deployment", {"template": {"spec": {"affinity": {"podAffinity": {}}}}}, Size(1)),
        ("apps/v1 Deployment", {"template": {"spec": {"nodeSelector": {}, "affinity": 8}}}, Size(1)),
        ("v1 Pod", pod(container(cpu="0", memory="1Gi")), Size(1, (("memory", "1Gi"),))),
        ("v1 Pod", pod(container(cpu="0m")), Size(1)),
        ("v1 Pod", pod(container(cpu="0"), container(cpu="0Ki")), Size(1)),
        (
            "batch/v1 Job",
            {"parallelism": 4, "completions": 8, "template": {"spec": SMALL}},
            Size(4, SMALL_NEEDS, completions=8),
        ),
        ("batch/v1 Job", {}, Size(1)),
        # The verdicts on inputs do not check these fields.
        ("batch/v1 Job", {"parallelism": 4, "completions": "8"}, Size(4)),
        ("batch/v1 Job", {"parallelism": 4, "completions": -8}, Size(4)),
        ("batch/v1 Job", {"parallelism": 4, "completions": 2**64}, Size(4)),
        ("apps/v1 Deployment", {"template": {"spec": {"priorityClassName": 8}}}, Size(1)),
        (
            "apps/v1 Deployment",
            {"template": {"spec": pod(*[container(cpu="9" * 25 + "e40")] * 2)}},
            Size(1, (("cpu", "9" * 64),)),
        ),
        # A Pod is one replica, with any other fields.
        ("v1 Pod", SMALL, Size(1, SMALL_NEEDS)),
        ("v1 Pod", {**SMALL, "replicas": 7}, Size(1, SMALL_NEEDS)),
        ("v1 Pod", pod(container(cpu="1"), container(cpu="500m")), Size(1, (("cpu", "1500m"),))),
        (
            "v1 Pod",
            pod(container(cpu="1"), initContainers=[container(cpu="2")], overhead={"cpu": "250m"}),
            Size(1, (("cpu", "2250m"),)),
        ),
        ("v1 Pod", {}, Size(1)),
        ("v1 Pod", pod(container(cpu="much")), Size(1)),
        ("v1 Pod", pod(container(cpu="-1")), Size(1)),
        ("v1 Pod", {"containers": "none"}, Size(1)),
        ("apps/v1 DaemonSet", {"template": {"spec": SMALL}}, NONE),
        ("batch/v1 CronJob", {}, NONE),
        ("v1 Service", {}, NONE),
        ("example.io/v1 Pod", SMALL, NONE),
    ],
)
def test_size_of_a_workload(kind: str, spec: Json, size: Size) -> None:
    api_version, _, name = kind.partition(" ")
    assert workloads.size(api_version, name, msgspec.json.encode({"spec": spec})) == size
