"""Keys are assigned to the same partitions as by Kafka's Java client."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import partitioning

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
    assert partitioning.murmur2(key) == value % 2**32


@pytest.mark.parametrize(
    ("key", "partition"),
    [("foobar", (-790332482 & 0x7FFFFFFF) % 12), ("21", (-973932308 & 0x7FFFFFFF) % 12), ("abc", 3)],
)
def test_sign_bit_is_masked_before_the_remainder(key: str, partition: int) -> None:
    assert partitioning.partition_of(key, 12) == partition


@given(st.text(), st.integers(1, 200))
def test_every_key_has_a_partition(key: str, partitions: int) -> None:
    assert 0 <= partitioning.partition_of(key, partitions) < partitions
