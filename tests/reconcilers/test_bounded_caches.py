"""Caches bounded by number and size."""

from engine.bounded_caches import BoundedCache


def cached_keys(cache: BoundedCache[str, bytes], keys: str) -> str:
    return "".join(key for key in keys if cache.get(key) is not None)


def test_values_not_used_for_the_longest_time_are_dropped_beyond_the_size() -> None:
    cache = BoundedCache[str, bytes](bytes_max=10, size_of=len)
    for key in "abc":
        cache.put(key, b"xxx")
    assert cache.get("a") == b"xxx"

    cache.put("d", b"xxxx")
    assert cached_keys(cache, "abcd") == "acd"


def test_replaced_value_counts_once() -> None:
    cache = BoundedCache[str, bytes](bytes_max=10, size_of=len)
    for _ in range(5):
        cache.put("a", b"xxxx")
    cache.put("b", b"xxxxxx")
    assert cached_keys(cache, "ab") == "ab"


def test_number_is_bounded_and_the_newest_value_kept_whatever_its_size() -> None:
    cache = BoundedCache[str, bytes](bytes_max=10, size_of=len, count_max=2)
    for key in "abc":
        cache.put(key, b"")
    assert cached_keys(cache, "abc") == "bc"

    cache.put("d", bytes(100))
    assert cached_keys(cache, "bcd") == "d"
