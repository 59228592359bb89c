"""Discovery in all its formats, as kubectl reads it."""

from pathlib import Path

import pytest

from engine.kubeapi.schema import discovery, resources
from events.validation import known_kinds
from tests.kube import recording

V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("accept", "version"),
    [
        (f"{V2},{V2BETA1},application/json", "v2"),
        (f"{V2BETA1},application/json", "v2beta1"),
        (f"{V2BETA1}, {V2}", "v2beta1"),
        ("application/json", ""),
        (f"application/json,{V2}", ""),
        ("*/*", ""),
        ("", ""),
        ("application/json;as=Table;g=meta.k8s.io;v=v1", ""),
    ],
)
def test_discovery_format_is_negotiated(accept: str, version: str) -> None:
    assert discovery.negotiated(accept) == version


def test_only_the_command_line_knows_the_short_name_of_rebalancers() -> None:
    resource = resources.control_plane().of_kind(
        known_kinds.REBALANCER.api_version, known_kinds.REBALANCER.kind
    )
    assert resource is not None
    assert (known_kinds.REBALANCER.short, resource.short_names) == (("wr",), ())


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("program", recording.programs()[:1])
def test_kubectl_lists_the_kinds(tmp_path: Path, program: str, old: bool) -> None:
    with recording.kubectl(tmp_path, old=old) as kubectl:
        lines = kubectl.prints(program, "api-resources", "--no-headers").splitlines()
    rows = {(words := line.split())[0]: words[1:] for line in lines}
    assert rows["deployments"] == ["deploy", "apps/v1", "true", "Deployment"]
    assert rows["workloadrebalancers"] == ["apps.karmada.io/v1alpha1", "false", "WorkloadRebalancer"]
    assert rows["resourcebindings"] == ["rb", "work.karmada.io/v1alpha2", "true", "ResourceBinding"]
    names = {(resource.group, resource.plural) for resource in resources.control_plane().resources}
    assert len(lines) == len(names)  # each in its preferred version


@pytest.mark.parametrize("program", recording.programs()[:1])
def test_short_name_resolves_to_the_first_group(tmp_path: Path, program: str) -> None:
    with recording.kubectl(tmp_path) as kubectl:
        kubectl.prints(program, "get", "deploy,ev,crb", "-n", "shop")
        paths = [request.path.partition("?")[0] for request in kubectl.requests]
    assert "/apis/apps/v1/namespaces/shop/deployments" in paths
    assert "/api/v1/namespaces/shop/events" in paths
    assert "/apis/work.karmada.io/v1alpha2/clusterresourcebindings" in paths


def test_unknown_version_has_no_document() -> None:
    catalogue = resources.control_plane()
    assert discovery.api_resources(catalogue, "apps", "v2") is None
    assert discovery.api_group(catalogue, "") is None
    group = discovery.api_group(catalogue, "work.karmada.io")
    assert group
    assert group.get("preferredVersion") == {
        "groupVersion": "work.karmada.io/v1alpha2",
        "version": "v1alpha2",
    }
