"""Keys of objects and bindings; binding names follow the reference's rule."""

import pytest

from events import keys


@pytest.mark.parametrize(
    ("kind", "namespace", "name", "key"),
    [
        ("Deployment", "default", "foo", "default/foo-deployment"),
        ("ClusterRole", "", "system:view", "system.view-clusterrole"),
        ("ConfigMap", "kube-system", "a.b", "kube-system/a.b-configmap"),
    ],
)
def test_template_has_the_key_of_its_binding(kind: str, namespace: str, name: str, key: str) -> None:
    assert keys.binding_key(kind, namespace, name) == key


def test_objects_read_by_every_shard_are_keyed_by_kind() -> None:
    assert keys.object_key("PropagationPolicy", "default", "nginx") == "propagationpolicy:default/nginx"
    assert keys.object_key("Namespace", "", "shop") == "namespace:shop"


def test_rebalancer_key_differs_from_template_keys() -> None:
    key = keys.rebalancer_key("demo")
    assert key == "workloadrebalancer:demo"
    # A template's name may contain a colon, its binding's name does not.
    assert ":" not in keys.binding_key("Role", "", "workloadrebalancer:demo")


def test_shard_is_the_partition_of_the_key() -> None:
    assert keys.shard_of("default/foo-deployment") in range(12)
