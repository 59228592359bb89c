"""Keys of records, and the partitions that Kafka's clients choose for them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


# Expected murmur2 values from the Java client's own unit test, as signed 32-bit numbers.
JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("key", "value"), JAVA.items())
def test_murmur2_equals_that_of_the_java_client(key: bytes, value: int) -> None:
    assert keys.murmur2(key) == value % 2**32


@pytest.mark.parametrize(
    ("key", "partition"),
    [("foobar", (-790332482 & 0x7FFFFFFF) % 12), ("21", (-973932308 & 0x7FFFFFFF) % 12), ("abc", 3)],
)
def test_sign_bit_is_masked_before_the_remainder(key: str, partition: int) -> None:
    assert keys.partition_of(key, 12) == partition


@given(st.text(), st.integers(1, 200))
def test_every_key_has_a_partition(key: str, partitions: int) -> None:
    assert 0 <= keys.partition_of(key, partitions) < partitions
