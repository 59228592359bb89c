"""Validation of the metadata of Kubernetes' own kinds."""

import pytest

from engine.kubeapi.admission.rules import built_in
from engine.kubeapi.schema.resources import Resource, control_plane
from engine.kubeapi.schema.schemas import UNTYPED
from events.json_values import Json
from events.kube_objects import KubeObject
from tests.builders.manifests import manifest

APPLICATIONS = Resource(
    group="argoproj.io",
    version="v1alpha1",
    kind="Application",
    plural="applications",
    singular="application",
    schema=UNTYPED,
    custom=True,
)


def _messages(resource: Resource | None, name: str, **metadata: object) -> list[str]:
    assert resource
    value = manifest(resource.api_version, resource.kind, name, metadata=metadata)
    wrong = built_in.faults(resource, KubeObject(value), None)
    return [cause.text for cause in wrong if cause.field.startswith("metadata.")]


@pytest.mark.parametrize(
    ("resource", "is_accepted"),
    [
        (APPLICATIONS, True),
        (control_plane().resource("apiextensions.k8s.io", "v1", "customresourcedefinitions"), True),
        (control_plane().resource("", "v1", "configmaps"), False),
    ],
)
def test_finalizers_of_custom_kinds_need_no_path(resource: Resource | None, is_accepted: bool) -> None:
    def errors(finalizer: str) -> list[str]:
        messages = _messages(resource, "shop", finalizers=[finalizer])
        return [message for message in messages if message.startswith("metadata.finalizers")]

    assert (errors("resources-finalizer.argocd.argoproj.io") == []) == is_accepted
    assert errors("a b")
    assert errors("foregroundDeletion") == []


@pytest.mark.parametrize(
    ("group", "version", "plural", "is_accepted"),
    [
        ("certificates.k8s.io", "v1", "certificatesigningrequests", True),
        ("rbac.authorization.k8s.io", "v1", "clusterroles", True),
        ("", "v1", "events", True),
        ("events.k8s.io", "v1", "events", False),
        ("", "v1", "configmaps", False),
    ],
)
def test_some_names_are_any_path_segment(group: str, version: str, plural: str, is_accepted: bool) -> None:
    resource = control_plane().resource(group, version, plural)
    assert (_messages(resource, "system:Alice") == []) == is_accepted
    assert _messages(resource, "system/Alice")


@pytest.mark.parametrize(("length", "is_accepted"), [(52, True), (53, False)])
def test_names_of_cron_jobs_leave_space_for_those_of_their_jobs(length: int, is_accepted: bool) -> None:
    resource = control_plane().resource("batch", "v1", "cronjobs")
    assert (_messages(resource, "a" * length) == []) == is_accepted


def test_errors_about_many_owners_take_bounded_memory() -> None:
    config_maps = control_plane().resource("", "v1", "configmaps")
    assert config_maps
    value = KubeObject(manifest("v1", "ConfigMap", "one"))
    # The error about a second controller quotes all owners, once for each further controller.
    owners: list[Json] = [{"controller": True}] * 2_000
    wrong = built_in.faults(config_maps, value.with_metadata({"ownerReferences": owners}), None)
    assert len(wrong) > 4
    assert sum(len(cause.text) for cause in wrong) < 2 * 1024 * 1024


class _Finalizer(str):
    """A finalizer that counts how often it is compared."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        _Finalizer.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_finalizers_of_an_ending_object_are_looked_up() -> None:
    config_maps = control_plane().resource("", "v1", "configmaps")
    assert config_maps
    value = KubeObject(manifest("v1", "ConfigMap", "one"))
    finalizers = [_Finalizer(f"example.com/f{index}") for index in range(100)]
    before = value.with_metadata({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers})
    after = value.with_metadata({"finalizers": [str(finalizer) for finalizer in reversed(finalizers)]})
    assert built_in.faults(config_maps, after, before) == []
    assert _Finalizer.comparisons < 1_000
