"""Protobuf bodies: one recorded from kubectl 1.32, and hostile ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kubeapi.schema.types import parsing
from engine.kubeapi.wire import protobuf
from events.json_values import Json

RECORDED = bytes.fromhex(
    "6b3873000a150a07617070732f7631120a4465706c6f796d656e7412c0010a230a056e67696e7812001a0022002a0032003800"
    "42005a0c0a036170701205"
    "6e67696e78128a010800120e0a0c0a0361707012056e67696e781a6e0a1e0a0012001a0022002a003200380042005a0c0a0361"
    "707012056e67696e78124c122e0a056e67696e7812056e67696e782a00320a0a001000185022002a0042006a00720080010088"
    "01009001"
    "00a201001a00320042004a005200580060006800820100"
    "8a01009a0100c2010022020a002800380"
    "01a0c08001000180020002800380"
    "01a002200"
)
"""``kubectl create deployment nginx --image nginx --replicas 0 --port 80``."""

DEPLOYMENT = parsing.named("apps.Deployment")


def _bytes(number: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def _body(message: bytes, *, kind: bytes = b"ConfigMap") -> bytes:
    return protobuf.MAGIC + _bytes(1, _bytes(1, b"v1") + _bytes(2, kind)) + _bytes(2, message)


def test_recorded_body_is_decoded() -> None:
    assert protobuf.kind_of(RECORDED) == ("apps/v1", "Deployment")
    container: Json = {"name": "nginx", "image": "nginx", "ports": [{"containerPort": 80}], "resources": {}}
    assert protobuf.decode(RECORDED, DEPLOYMENT, depth_max=64) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "nginx", "labels": {"app": "nginx"}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "nginx"}},
            "template": {"metadata": {"labels": {"app": "nginx"}}, "spec": {"containers": [container]}},
            "strategy": {},
        },
        "status": {},
    }


def test_bytes_become_base64_and_times_become_text() -> None:
    config = parsing.named("core.ConfigMap")
    metadata = _bytes(8, bytes([8, 60]))
    entry = _bytes(1, b"key") + _bytes(2, b"\x00\xff")
    read = protobuf.decode(_body(_bytes(1, metadata) + _bytes(3, entry)), config, depth_max=8)
    assert read["metadata"] == {"creationTimestamp": "1970-01-01T00:01:00Z"}
    assert read["binaryData"] == {"key": "AP8="}


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (_bytes(1, b"\x08"), "metadata: a number does not end"),
        (bytes([1 << 3 | 2, 100]), "reaches 100 bytes beyond the end"),
        (bytes([1 << 3 | 3]), "wire type 3"),
        (bytes([0]), "number 0"),
        (bytes([1 << 3, 1]), "metadata: is a number on the wire"),
        (_bytes(1, _bytes(1, b"\xff")), "metadata.name: is not UTF-8"),
        (_bytes(1, _bytes(8, bytes([8]) + b"\xff" * 8 + b"\x7f")), "not a time in the years"),
    ],
)
def test_malformed_body_is_reported(message: bytes, words: str) -> None:
    with pytest.raises(protobuf.ProtobufError, match=words):
        protobuf.decode(_body(message), parsing.named("core.ConfigMap"), depth_max=8)


def test_nesting_is_limited() -> None:
    with pytest.raises(protobuf.ProtobufError, match="nested too deeply"):
        protobuf.decode(RECORDED, DEPLOYMENT, depth_max=3)


def test_number_of_values_is_limited() -> None:
    many = protobuf.MAGIC + _bytes(1, _bytes(1, b"v1") + _bytes(2, b"ConfigMap"))
    flood = bytes([9 << 3, 0]) * 300_000
    size = len(flood)
    many += bytes([2 << 3 | 2, size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14]) + flood
    with pytest.raises(protobuf.ProtobufError, match="values in one body"):
        protobuf.decode(many, parsing.named("core.ConfigMap"), depth_max=8)


def test_kind_without_field_numbers_is_refused() -> None:
    with pytest.raises(protobuf.ProtobufError, match="send JSON"):
        protobuf.decode(
            _body(b"", kind=b"WorkloadRebalancer"),
            parsing.named("apps.karmada.WorkloadRebalancer"),
            depth_max=8,
        )


@given(st.binary(max_size=200), st.integers(0, len(RECORDED) - 5))
def test_any_bytes_are_decoded_or_refused(noise: bytes, offset: int) -> None:
    damaged = RECORDED[: offset + 4] + noise + RECORDED[offset + 4 + len(noise) :]
    for body in (protobuf.MAGIC + noise, damaged):
        try:
            read = protobuf.decode(body, DEPLOYMENT, depth_max=16)
        except protobuf.ProtobufError:
            continue
        assert isinstance(read["kind"], str)
