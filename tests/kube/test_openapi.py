"""OpenAPI documents, as the real kubectl reads them, with descriptions of the control plane's own kinds."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.kubeapi.schema import openapi, resources
from events.json_values import Json, as_list, as_object, object_at
from tests.kube import recording

CATALOGUE = resources.control_plane()


def _kubectl() -> str:
    program = shutil.which("kubectl")
    if program is None:
        pytest.fail("no kubectl on the PATH")
    return program


def _answers() -> dict[str, Json]:
    answers = {"/openapi/v3": openapi.index(CATALOGUE)}
    for group, version, root in (
        ("apps", "v1", "apis/apps/v1"),
        ("policy.karmada.io", "v1alpha1", "apis/policy.karmada.io/v1alpha1"),
    ):
        document = openapi.document(CATALOGUE, group, version)
        assert document
        answers[f"/openapi/v3/{root}"] = document
    return answers


def test_kubectl_explains_fields(tmp_path: Path) -> None:
    with recording.kubectl(tmp_path, answers=_answers()) as kubectl:
        ports = kubectl.prints(_kubectl(), "explain", "deployment.spec.template.spec.containers.ports")
        placement = kubectl.prints(_kubectl(), "explain", "propagationpolicies.spec.placement")
    assert "containerPort\t<integer> -required-" in ports
    assert "The clusters, and how replicas are divided among them." in placement
    assert "The numbers of clusters and regions over which workloads are spread." in placement
    assert (
        "spreadConstraints\t<[]SpreadConstraint>" in placement or "spreadConstraints\t<[]Object>" in placement
    )


MANIFEST = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: one, namespace: shop}
spec: {colour: red}
"""


def test_kubectl_leaves_field_validation_to_the_server(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(MANIFEST)
    with recording.kubectl(tmp_path, answers=_answers()) as kubectl:
        posted = kubectl.posts(_kubectl(), "create", "-f", str(file))
    assert "fieldValidation=Strict" in posted.path
    assert b"colour" in posted.body


def test_every_reference_is_defined() -> None:
    for group in CATALOGUE.groups:
        for version, _held in group.versions:
            document = openapi.document(CATALOGUE, group.name, version)
            assert document
            schemas = object_at(document, "components", "schemas")
            for reference in _references(document):
                assert reference.removeprefix("#/components/schemas/") in schemas


def _references(value: object) -> list[str]:
    fields, items = as_object(value), as_list(value)
    if fields is not None:
        own = [str(fields["$ref"])] if "$ref" in fields else []
        return own + [reference for item in fields.values() for reference in _references(item)]
    return [reference for item in items or [] for reference in _references(item)]


def test_unserved_version_has_no_document() -> None:
    assert openapi.document(CATALOGUE, "apps", "v2") is None


def test_integers_have_their_width() -> None:
    document = openapi.document(CATALOGUE, "apps", "v1")
    assert document
    schemas = object_at(document, "components", "schemas")
    status = object_at(schemas[_name("DeploymentStatus", schemas)], "properties")
    assert status["replicas"] == {"type": "integer", "format": "int32"}
    assert status["observedGeneration"] == {"type": "integer", "format": "int64"}


def _name(kind: str, schemas: Json) -> str:
    return next(name for name in schemas if name.endswith(f".{kind}"))


@pytest.mark.parametrize(
    ("group", "version", "name"),
    [
        ("", "v1", "io.k8s.api.core.v1.PodSpec"),
        ("apps", "v1", "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"),
        ("autoscaling", "v1", "io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler"),
        ("autoscaling", "v2", "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler"),
        (
            "apiextensions.k8s.io",
            "v1",
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
        ),
        ("policy.karmada.io", "v1alpha1", "policy.karmada.PropagationPolicy"),
    ],
)
def test_types_of_kubernetes_have_the_names_of_its_documents(group: str, version: str, name: str) -> None:
    document = openapi.document(CATALOGUE, group, version) or {}
    assert name in object_at(document, "components", "schemas")


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
    return ((name, object_at(schema)) for name, schema in schemas.items() if name.startswith(package))


@pytest.mark.parametrize(("group", "version"), GROUPS)
def test_every_type_and_field_has_a_description(group: str, version: str) -> None:
    types = dict(components(group, version))

    assert types
    for name, component in types.items():
        properties = object_at(component, "properties")
        described = {field for field, schema in properties.items() if object_at(schema).get("description")}
        assert component.get("description"), name
        assert properties.keys() - described == set(), name
