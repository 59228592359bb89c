"""Names of Works; labels and annotations of an object in a cluster."""

import pytest

from engine.domain import marks
from events import shapes
from events.kube_objects import KubeObject


@pytest.mark.parametrize(
    ("kind", "namespace", "name", "work"),
    [
        ("Deployment", "probe", "web", "web-6b97f9b76b"),
        ("Deployment", "default", "nginx", "nginx-687f7fb96f"),
    ],
)
def test_work_has_the_name_that_the_reference_gives_it(
    kind: str, namespace: str, name: str, work: str
) -> None:
    assert marks.work_name(kind, namespace, name) == work


def test_work_of_a_name_that_is_no_subdomain_has_a_valid_name() -> None:
    assert marks.work_name("ClusterRole", "", "system:Node") == marks.work_name(
        "ClusterRole", "", "system.node"
    )


def test_cluster_scoped_object_refers_to_its_cluster_binding() -> None:
    ref = shapes.WorkloadRef(api_version="rbac.authorization.k8s.io/v1", kind="ClusterRole", name="reader")
    propagated = marks.propagated(
        KubeObject({"metadata": {"name": "reader"}}),
        marks.MarkValues(template=ref, cluster="one", binding_uid="7"),
    )
    assert propagated.labels == {
        "karmada.io/managed": "true",
        "clusterresourcebinding.karmada.io/permanent-id": "7",
    }
    annotations = propagated.annotations
    assert annotations["clusterresourcebinding.karmada.io/name"] == "reader-clusterrole"
    assert set(marks.ANNOTATIONS) > annotations.keys()


def test_overrides_change_no_marks_but_those_of_the_policy() -> None:
    ref = shapes.WorkloadRef(api_version="v1", kind="ConfigMap", namespace="default", name="web")
    claim = marks.Claim(shapes.PolicyRef(kind="PropagationPolicy", namespace="default", name="p"), "3")
    propagated = marks.propagated(
        KubeObject({"metadata": {"name": "web", "annotations": {"note": "a"}}}),
        marks.MarkValues(template=ref, cluster="one", binding_uid="7", claim=claim),
    )
    overridden = propagated.with_metadata({"labels": {"app": "web"}, "annotations": {"team": "b"}})
    restored = marks.restored(overridden, propagated)
    assert restored.labels == {
        "app": "web",
        "karmada.io/managed": "true",
        "resourcebinding.karmada.io/permanent-id": "7",
    }
    annotations = restored.annotations
    assert (annotations["team"], annotations["resourcebinding.karmada.io/name"]) == ("b", "web-configmap")
    assert not {"note", *marks.CLAIMS} & annotations.keys()
    managed = str(annotations["resourcetemplate.karmada.io/managed-annotations"])
    assert managed.split(",") == sorted(annotations)


def test_label_of_a_dependency_names_the_dependent_binding_as_the_reference_does() -> None:
    assert marks.depended_by("test/test-binding") == "resourcebinding.karmada.io/depended-by-5dbb6dc9c8"
