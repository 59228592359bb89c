"""The protobuf format of OpenAPI v2, as far as older kubectl versions read it."""

import json

from engine.kubeapi.schema import openapi_v2
from engine.kubeapi.schema.resources import control_plane
from engine.kubeapi.wire import protobuf


def below(message: bytes, *numbers: int) -> list[bytes]:
    """Return the values at the end of a path of field numbers."""
    values = [message]
    for number in numbers:
        values = [
            value for parent in values for at, value in protobuf.values(parent) if at == number and value != 0
        ]
        values = [value for value in values if isinstance(value, bytes)]
    return values


def test_patch_of_each_kind_declares_its_kind_and_field_validation() -> None:
    document = openapi_v2.document(control_plane())
    kinds: dict[tuple[str, str], set[bytes]] = {}
    for patch in below(document, 8, 2, 2, 8):
        (yaml,) = below(patch, 13, 2, 2)
        kind = json.loads(yaml)
        kinds[kind["group"], kind["kind"]] = set(below(patch, 8, 1, 2, 3, 4))
    assert {b"fieldValidation", b"dryRun"} <= kinds["apps", "Deployment"]
    assert {b"fieldValidation", b"dryRun"} <= kinds["policy.karmada.io", "PropagationPolicy"]
    assert b"/apis/apps/v1/namespaces/{namespace}/deployments/{name}" in below(document, 8, 2, 1)
    assert below(document, 1) == [b"2.0"]
