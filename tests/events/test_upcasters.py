"""Upcasting: old event versions are converted version by version to the newest."""

import msgspec
import pytest

from events import clusters, codec, records, specs

FIRST = "io.reballast.cluster-described.v-1"
SECOND = "io.reballast.cluster-described.v0"
NEWEST = "io.reballast.cluster-described.v1"
WRAPPED = "io.reballast.template-applied.v0"


def zone_to_zones(data: dict[str, object]) -> dict[str, object]:
    """The first version had a single zone."""
    rest = {name: value for name, value in data.items() if name != "zone"}
    return {**rest, "zones": [data["zone"]]}


def cluster_to_name(data: dict[str, object]) -> dict[str, object]:
    """The second version had another field for the name."""
    rest = {name: value for name, value in data.items() if name != "cluster"}
    return {**rest, "name": data["cluster"]}


def unwrapped(data: dict[str, object]) -> dict[str, object]:
    return {"manifest": data["object"]}


REGISTRY: codec.Registry = {
    FIRST: (SECOND, zone_to_zones),
    SECOND: (NEWEST, cluster_to_name),
    WRAPPED: ("io.reballast.template-applied.v1", unwrapped),
}


def decode(event_type: str, value: bytes) -> codec.Decoded | codec.Malformed | codec.Unknown:
    headers = {"ce_specversion": "1.0", "ce_id": "1", "ce_source": "/a", "ce_type": event_type}
    return codec.decode(records.record("clusters", 0, "member1", headers, value), REGISTRY)


@pytest.mark.parametrize(
    ("event_type", "value"),
    [
        (FIRST, b'{"cluster":"member1","zone":"z1","region":"east"}'),
        (SECOND, b'{"cluster":"member1","zones":["z1"],"region":"east"}'),
        (NEWEST, b'{"name":"member1","zones":["z1"],"region":"east"}'),
    ],
)
def test_every_version_decodes_to_the_same_data(event_type: str, value: bytes) -> None:
    decoded = decode(event_type, value)
    assert isinstance(decoded, codec.Decoded)
    assert decoded.data == clusters.ClusterDescribed(name="member1", region="east", zones=("z1",))
    # The envelope stays as it was written.
    assert decoded.envelope.type == event_type


def test_upcast_manifest_keeps_its_field_order() -> None:
    decoded = decode(WRAPPED, b'{"object": {"kind": "Secret", "apiVersion": "v1"}}')
    assert isinstance(decoded, codec.Decoded)
    assert decoded.data == specs.TemplateApplied(manifest=msgspec.Raw(b'{"kind":"Secret","apiVersion":"v1"}'))


@pytest.mark.parametrize(
    "value", [b"", b"null", b"[]", b"{}", b'{"cluster":"a"}', b'{"cluster":1,"zone":{}}', b"\xff"]
)
def test_malformed_old_data_is_malformed(value: bytes) -> None:
    assert isinstance(decode(FIRST, value), codec.Malformed)


def test_old_version_without_an_upcaster_is_unknown() -> None:
    headers = {"ce_specversion": "1.0", "ce_id": "1", "ce_source": "/a", "ce_type": FIRST}
    assert isinstance(codec.decode(records.record("clusters", 0, "member1", headers, b"{}")), codec.Unknown)


def test_newest_version_is_unchanged() -> None:
    assert codec.upcast(NEWEST, {"name": "a"}, REGISTRY) == (NEWEST, {"name": "a"})
