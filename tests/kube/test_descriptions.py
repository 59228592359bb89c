"""``kubectl explain``: descriptions of all fields of the Karmada kinds and of our own."""

from collections.abc import Iterator

import pytest

from engine.kubeapi.schema import openapi, resources
from events.json_values import Json, object_at

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
    schemas = object_at(document, "components", "schemas")
    package = group.removesuffix(".io") + "."
    return ((name, object_at(each)) for name, each in schemas.items() if name.startswith(package))


@pytest.mark.parametrize(("group", "version"), GROUPS)
def test_every_type_and_field_has_a_description(group: str, version: str) -> None:
    found = dict(components(group, version))

    assert found
    for name, component in found.items():
        properties = object_at(component, "properties")
        told = {field for field, each in properties.items() if object_at(each).get("description")}
        assert component.get("description"), name
        assert properties.keys() - told == set(), name


@pytest.mark.parametrize(("group", "version"), GROUPS)
def test_every_description_has_a_field(group: str, version: str) -> None:
    for name, component in components(group, version):
        properties = object_at(component, "properties")
        assert openapi.description_of(name).fields.keys() <= properties.keys() | {
            "apiVersion",
            "kind",
            "metadata",
        }
