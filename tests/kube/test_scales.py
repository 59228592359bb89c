"""Scale subresources of built-in and of custom kinds."""

import msgspec
import pytest

from engine.kubeapi.conversion import scales
from engine.kubeapi.schema import resources
from events.kube_objects import KubeObject

DEPLOYMENT = KubeObject(
    {
        "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "7", "labels": {"a": "b"}},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "paused": True},
        "status": {"replicas": 2},
    }
)


def _deployments() -> resources.Resource:
    resource = resources.control_plane().resource("apps", "v1", "deployments")
    assert resource
    return resource


def test_object_is_converted_to_a_scale_and_back() -> None:
    scale = scales.scale_of(_deployments(), DEPLOYMENT)
    assert scale.document == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "7"},
        "spec": {"replicas": 3},
        "status": {"replicas": 2, "selector": "app=web"},
    }
    after = scales.scaled(_deployments(), DEPLOYMENT, scale.with_fields({"spec": {"replicas": 5}}))
    assert scales.scale_of(_deployments(), after).at("spec") == {"replicas": 5}
    assert scales.scale_of(_deployments(), DEPLOYMENT).at("spec") == {"replicas": 3}


def test_scale_of_a_replication_controller_has_its_selector() -> None:
    resource = resources.control_plane().resource("", "v1", "replicationcontrollers")
    assert resource
    value = KubeObject(
        {"metadata": {"name": "web"}, "spec": {"replicas": 2, "selector": {"b": "2", "a": "1"}}}
    )
    assert scales.scale_of(resource, value).at("status") == {"replicas": 0, "selector": "a=1,b=2"}


def test_custom_kind_declares_the_paths_of_its_counts() -> None:
    paths = resources.ScalePaths(
        spec_replicas=".spec.size.wanted", status_replicas=".status.n", label_selector=".status.selector"
    )
    house = msgspec.structs.replace(_deployments(), custom=True, scale=paths)
    value = KubeObject({"metadata": {"name": "one"}, "status": {"n": 1, "selector": "a=b"}})
    after = scales.scaled(house, value, KubeObject({"spec": {"replicas": 4}}))
    assert after.at("spec") == {"size": {"wanted": 4}}
    assert scales.scale_of(house, after).at("status") == {"replicas": 1, "selector": "a=b"}


@pytest.mark.parametrize("replicas", [-1, "3", True, None])
def test_invalid_replica_count_is_refused(replicas: object) -> None:
    with pytest.raises(scales.ScaleError, match=r"spec\.replicas"):
        scales.scaled(_deployments(), DEPLOYMENT, KubeObject({"spec": {"replicas": replicas}}))
