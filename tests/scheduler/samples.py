"""Clusters and bindings of a small Karmada."""

from tests.scheduler.api import Json

NAME = "reballast"


def cluster(name: str, cpu: str = "10", **labels: str) -> Json:
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"syncMode": "Push"},
        "status": {
            "apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment"}]}],
            "resourceSummary": {"allocatable": {"cpu": cpu, "memory": "100Gi", "pods": "1000"}},
        },
    }


def divided(*clusters: str) -> Json:
    return {
        "clusterAffinity": {"clusterNames": list(clusters)},
        "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"},
    }


def binding(name: str, replicas: int, placement: Json, scheduler: str = NAME, **spec: object) -> Json:
    return {
        "metadata": {
            "name": f"{name}-deployment",
            "namespace": "default",
            "labels": {"propagationpolicy.karmada.io/permanent-id": "an-id"},
        },
        "spec": {
            "resource": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "namespace": "default",
                "name": name,
                "uid": f"uid-of-{name}",
            },
            "replicas": replicas,
            "replicaRequirements": {"resourceRequest": {"cpu": "100m"}},
            "placement": placement,
            "schedulerName": scheduler,
            **spec,
        },
    }
