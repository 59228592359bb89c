"""``kubectl explain``: descriptions of all fields of the Karmada kinds and of our own."""

from collections.abc import Iterator

import pytest

from engine.kubeapi.schema import descriptions, openapi, resources
from events.json_values import Json, as_object

GROUPS = [
    ("policy.karmada.io", "v1alpha1"),
    ("work.karmada.io", "v1alpha1"),
    ("work.karmada.io", "v1alpha2"),
    ("cluster.karmada.io", "v1alpha1"),
    ("apps.karmada.io", "v1alpha1"),
    ("config.reballast.io", "v1alpha1"),
]


def components(group: str, version: str) -> Iterator[tuple[str, Json]]:
    """Yield the types of a group's document that belong to the group."""
    document = openapi.document(resources.control_plane(), group, version) or {}
    schemas = as_object((as_object(document["components"]) or {})["schemas"]) or {}
    package = group.removesuffix(".io") + "."
    return ((name, as_object(each) or {}) for name, each in schemas.items() if name.startswith(package))


@pytest.mark.parametrize(("group", "version"), GROUPS)
def test_every_type_and_field_has_a_description(group: str, version: str) -> None:
    found = dict(components(group, version))

    assert found
    for name, component in found.items():
        properties = as_object(component["properties"]) or {}
        told = {field for field, each in properties.items() if (as_object(each) or {}).get("description")}
        assert component.get("description"), name
        assert properties.keys() - told == set(), name


@pytest.mark.parametrize(("group", "version"), GROUPS)
def test_every_description_has_a_field(group: str, version: str) -> None:
    for name, component in components(group, version):
        properties = as_object(component["properties"]) or {}
        assert descriptions.of(name).fields.keys() <= properties.keys() | {"apiVersion", "kind", "metadata"}
