"""Validation of the metadata of Kubernetes' own kinds."""

from engine.kubeapi.admission.rules import built_in
from engine.kubeapi.schema.resources import control_plane
from events.json_values import Json
from events.kube_objects import KubeObject
from tests.builders.manifests import manifest


def test_errors_about_many_owners_take_bounded_memory() -> None:
    config_maps = control_plane().resource("", "v1", "configmaps")
    assert config_maps
    value = KubeObject(manifest("v1", "ConfigMap", "one"))
    # The error about a second controller quotes all owners, once for each further controller.
    owners: list[Json] = [{"controller": True}] * 2_000
    wrong = built_in.faults(config_maps, value.with_metadata({"ownerReferences": owners}), None)
    assert len(wrong) > 4
    assert sum(len(cause.text) for cause in wrong) < 2 * 1024 * 1024
