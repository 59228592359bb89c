"""Validation of pods and pod templates that clients write; the messages are those of a real API server."""

import pytest

from engine.kubeapi.admission.rules import built_in
from engine.kubeapi.schema.resources import control_plane
from events.json_values import Json
from events.kube_objects import KubeObject

CONTAINER: Json = {"name": "c", "image": "nginx"}


def _fields(plural: str, **fields: Json) -> list[str]:
    resource = control_plane().resource("", "v1", plural)
    assert resource
    value: Json = {"apiVersion": "v1", "kind": resource.kind, "metadata": {"name": "web"}, **fields}
    return [cause.field for cause in built_in.faults(resource, KubeObject(value), None)]


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"containers": [CONTAINER]}, []),
        ({}, ["spec.containers"]),
        ({"containers": [{**CONTAINER, "image": ""}]}, ["spec.containers[0].image"]),
        ({"containers": [CONTAINER], "restartPolicy": "Sometimes"}, ["spec.restartPolicy"]),
        ({"containers": [CONTAINER], "hostname": "A b"}, ["spec.hostname"]),
    ],
)
def test_pods_and_pod_templates_have_a_valid_spec(spec: Json, fields: list[str]) -> None:
    assert _fields("pods", spec=spec) == fields
    assert _fields("podtemplates", template={"spec": spec}) == [f"template.{field}" for field in fields]
