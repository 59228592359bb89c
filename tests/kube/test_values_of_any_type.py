"""Validation of stored objects that another producer wrote, with values of any type in any field."""

from collections.abc import Iterator
from typing import Final

import pytest

from engine.kubeapi.admission import built_in_defaults
from engine.kubeapi.admission.rules import built_in
from engine.kubeapi.schema.resources import control_plane
from events.json_values import Json, as_list, as_object
from events.kube_objects import KubeObject
from tests.builders.manifests import deployment, manifest
from tests.kube.oracle.objects import KINDS

_EMPTY: Final[list[object]] = []
_NOTHING: Final[Json] = {}
_NESTED: Final[tuple[object, ...]] = ([None], [_EMPTY], [_NOTHING], {"a": _EMPTY}, {"a": _NOTHING})
ODD: Final[tuple[object, ...]] = (None, True, -1, 0.5, 10**40, "", "a b", _EMPTY, _NOTHING, *_NESTED)
_MOUNTS: Final = [{"name": "cache", "mountPath": "/cache"}, {"name": "data", "mountPath": "/data"}]
_MOUNTING: Final = {"name": "main", "image": "nginx", "volumeMounts": _MOUNTS}
_PORTS: Final = [{"name": "a", "port": 80, "protocol": "TCP"}, {"name": "b", "port": 80, "protocol": "UDP"}]
OBJECTS: Final = [
    *KINDS.values(),
    deployment("one", containers=[_MOUNTING], volumes=[{"name": "cache"}, {"name": "data"}]),
    manifest("v1", "Service", "one", spec={"ports": _PORTS}),
]


def _changed(value: object) -> Iterator[object]:
    """Yield the value with each part of it replaced by each odd value."""
    yield from ODD
    for name, item in (as_object(value) or {}).items():
        yield from ({**(as_object(value) or {}), name: changed} for changed in _changed(item))
    items = as_list(value) or []
    for index, item in enumerate(items):
        yield from ([*items[:index], changed, *items[index + 1 :]] for changed in _changed(item))


@pytest.mark.parametrize("sample", OBJECTS, ids=lambda sample: KubeObject(sample).kind)
def test_rules_read_any_value_in_any_field(sample: Json) -> None:
    resource = control_plane().of_kind(*KubeObject(sample).type_meta)
    assert resource
    for changed in _changed(sample):
        document = as_object(changed)
        if document is not None:
            value = built_in_defaults.with_defaults(KubeObject({**sample, **document}))
            for cause in built_in.faults(resource, value, KubeObject(sample)):
                assert cause.text
