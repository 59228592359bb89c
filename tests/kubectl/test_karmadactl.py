"""karmadactl, if it is installed, and in any case a replay of the requests that it sends.

Commands that it shares with kubectl (apply, create, delete, edit, label, annotate, patch, explain,
api-resources) are tested with kubectl.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, cast

import httpx
import pytest

from tests.builders.manifests import cluster
from tests.kubectl import streams
from tests.kubectl.commands import SECONDS, Kubectl
from tests.kubectl.control_planes import ControlPlane
from tests.kubectl.manifests import BOTH
from tests.kubectl.streams import Json
from tests.waiting import until

CLUSTERS: Final = "/apis/cluster.karmada.io/v1alpha1/clusters"
TABLE: Final = ",".join(
    f"application/json;as=Table;v={version};g=meta.k8s.io" for version in ("v1", "v1beta1")
)
OLD_DISCOVERY: Final = (
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)
NEW_DISCOVERY: Final = f"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,{OLD_DISCOVERY}"
MERGE: Final = {"content-type": "application/merge-patch+json"}
CORDON: Final = {"effect": "NoSchedule", "key": "cluster.karmada.io/unschedulable"}


@pytest.fixture
def reading(control_plane: ControlPlane) -> Iterator[httpx.Client]:
    with streams.client(control_plane.reading) as client:
        yield client


@pytest.fixture
def writing(control_plane: ControlPlane) -> Iterator[httpx.Client]:
    with streams.client(control_plane.writing) as client:
        yield client


def test_get_with_scope_members_lists_deployments_of_each_member(
    kubectl: Kubectl, reading: httpx.Client
) -> None:
    """``get deploy --operation-scope members``: list the clusters, run discovery, then get a Table from each."""
    kubectl("apply", "-f", "-", stdin=BOTH)
    for name, row in (("member1", "web 2/2 2 2"), ("member2", "web 1/1 1 1")):
        kubectl.on(name).until(["NAME READY UP-TO-DATE AVAILABLE", row], "deploy")
    names = [streams.name_of(cluster) for cluster in _items(reading.get(CLUSTERS).json())]
    assert names == ["member1", "member2", "member3"]
    cells: dict[str, list[object]] = {}
    for name in names:
        assert reading.get(f"{CLUSTERS}/{name}").json()["kind"] == "Cluster"
        root = f"{CLUSTERS}/{name}/proxy"
        assert reading.get(f"{root}/api").json()["versions"] == ["v1"]
        assert _serves_deployments(reading, root)
        path = f"{root}/apis/apps/v1/namespaces/{kubectl.namespace}/deployments"
        table = reading.get(path, params={"limit": "500"}, headers={"accept": TABLE}).json()
        assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
        for row in table["rows"]:
            assert row["object"]["kind"] == "PartialObjectMetadata"
            assert row["object"]["metadata"]["labels"]["karmada.io/managed"] == "true", "so it prints Y"
            cells[name] = row["cells"][:4]
    assert cells == {"member1": ["web", "2/2", 2, 2], "member2": ["web", "1/1", 1, 1]}
    absent = reading.get(
        f"{CLUSTERS}/member3/proxy/apis/apps/v1/namespaces/{kubectl.namespace}/deployments/web",
        headers={"accept": TABLE},
    )
    assert (absent.status_code, absent.json()["message"]) == (404, 'deployments.apps "web" not found')


def test_get_and_describe_read_the_control_plane(kubectl: Kubectl, reading: httpx.Client) -> None:
    """``get deploy`` (scope karmada), and the requests of ``describe``."""
    kubectl("apply", "-f", "-", stdin=BOTH)
    kubectl.until(["NAME READY UP-TO-DATE AVAILABLE", "web 3/3 3 3"], "deploy")
    path = f"/apis/apps/v1/namespaces/{kubectl.namespace}/deployments/web"
    table = reading.get(path, headers={"accept": TABLE}).json()
    assert [row["cells"][:4] for row in table["rows"]] == [["web", "3/3", 3, 3]]
    shown = reading.get(path).json()
    fields = {
        "involvedObject.name": "web",
        "involvedObject.namespace": kubectl.namespace,
        "involvedObject.kind": "Deployment",
        "involvedObject.uid": shown["metadata"]["uid"],
    }
    selector = ",".join(f"{name}={value}" for name, value in fields.items())
    events = reading.get(
        f"/api/v1/namespaces/{kubectl.namespace}/events", params={"fieldSelector": selector, "limit": "500"}
    ).json()
    assert "ScheduleBindingSucceed" in {event["reason"] for event in _items(events)}


def test_taint_cordon_and_uncordon_patch_the_taints(reading: httpx.Client, writing: httpx.Client) -> None:
    """Each command reads the cluster twice and patches the whole list of taints."""
    path = f"{CLUSTERS}/member3"
    taint = {"effect": "NoSchedule", "key": "dedicated", "value": "x"}
    try:
        for taints in ([taint], [taint, CORDON], [taint]):
            assert reading.get(path).status_code == reading.get(path).status_code == 200
            patched = writing.patch(path, json={"spec": {"taints": taints}}, headers=MERGE)
            assert patched.status_code == 200, patched.text
            standing = reading.get(path).json()["spec"]["taints"]
            plain = [
                {name: stored[name] for name in sorted(stored) if name != "timeAdded"} for stored in standing
            ]
            assert plain == taints
    finally:
        writing.patch(path, json={"spec": {"taints": None}}, headers=MERGE)
    assert "taints" not in reading.get(path).json()["spec"]


def test_unjoin_deletes_the_cluster(reading: httpx.Client, writing: httpx.Client) -> None:
    """Delete a cluster and poll each second until it is gone."""
    body = cluster("outside")
    assert writing.post(CLUSTERS, json=body).status_code == 201
    assert reading.get(f"{CLUSTERS}/outside").status_code == 200
    assert writing.delete(f"{CLUSTERS}/outside").status_code == 200
    until(lambda: reading.get(f"{CLUSTERS}/outside").status_code == 404)
    again = writing.delete(f"{CLUSTERS}/outside")
    assert (again.status_code, again.json()["reason"]) == (404, "NotFound")


def test_top_is_served_for_members_with_metrics(reading: httpx.Client) -> None:
    root = f"{CLUSTERS}/member1/proxy"
    groups = {group["name"] for group in reading.get(f"{root}/apis").json()["groups"]}
    for resource in ("nodes", "pods"):
        answer = reading.get(f"{root}/apis/metrics.k8s.io/v1beta1/{resource}")
        assert answer.status_code == (200 if "metrics.k8s.io" in groups else 404)


def test_unknown_member_and_invalid_write_to_member_are_refused_with_a_status(reading: httpx.Client) -> None:
    nobody = reading.get(f"{CLUSTERS}/nobody/proxy/api")
    assert (nobody.status_code, nobody.json()["kind"]) == (404, "Status")
    post = reading.post(f"{CLUSTERS}/member1/proxy/api/v1/namespaces/default/configmaps", json={})
    assert (post.status_code, post.json()["kind"]) == (422, "Status")


def test_installed_karmadactl_lists_and_cordons_members(
    kubectl: Kubectl, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """Compare karmadactl's own output over all members."""
    program = _installed()
    kubectl("apply", "-f", "-", stdin=BOTH)
    kubectl.until(["NAME READY UP-TO-DATE AVAILABLE", "web 3/3 3 3"], "deploy")

    @contextmanager
    def cordoned() -> Generator[str]:
        yield _karmadactl(program, control_plane, tmp_path, "cordon", "member3")
        _karmadactl(program, control_plane, tmp_path, "uncordon", "member3")

    printed = _karmadactl(
        program,
        control_plane,
        tmp_path,
        "get",
        "deploy",
        "-n",
        kubectl.namespace,
        "--operation-scope",
        "members",
    )
    lines = [line.split() for line in printed.splitlines()]
    assert lines[0] == ["NAME", "CLUSTER", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "ADOPTION"]
    assert sorted(line[:5] for line in lines[1:]) == [
        ["web", "member1", "2/2", "2", "2"],
        ["web", "member2", "1/1", "1", "1"],
    ]
    with cordoned() as output:
        assert output == "member3 cluster cordoned\n"
    described = _karmadactl(
        program, control_plane, tmp_path, "describe", "deploy", "web", "-n", kubectl.namespace
    )
    assert "ScheduleBindingSucceed" in described


def test_installed_karmadactl_registers_a_cluster(control_plane: ControlPlane, tmp_path: Path) -> None:
    """With a bootstrap token, the roles and the certificate of its agent; the agent is started in member3."""
    program = _installed()
    config = json.loads(control_plane.reading.read_text())
    member = tmp_path / "member3"
    member.write_text(json.dumps({**config, "current-context": "member3"}))
    printed = _karmadactl(
        program,
        control_plane,
        tmp_path,
        *("token", "create", "--print-register-command", "--kubeconfig", str(control_plane.writing)),
    )
    registered = _karmadactl(
        program,
        control_plane,
        tmp_path,
        *printed.split()[1:],
        *("--cluster-name", "edge", "--kubeconfig", str(member)),
    )
    assert "cluster(edge) is joined successfully" in registered


def _installed() -> str:
    program = shutil.which("karmadactl")
    if program is None:
        pytest.skip("no karmadactl on the PATH: its requests are replayed by other tests")
    return program


def _karmadactl(program: str, control_plane: ControlPlane, home_directory: Path, *words: str) -> str:
    environment = {
        "HOME": str(home_directory),
        "KUBECONFIG": str(control_plane.reading),
        "PATH": os.environ["PATH"],
    }
    done = subprocess.run(
        [program, *words], env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    # karmadactl exits with 1 if a member lacks the object, but prints the other members nevertheless.
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def _serves_deployments(reading: httpx.Client, root: str) -> bool:
    """Return whether discovery lists Deployments, in each format that karmadactl versions request."""
    new, old = (
        json.dumps(reading.get(f"{root}/apis", headers={"accept": accept}).json())
        for accept in (NEW_DISCOVERY, OLD_DISCOVERY)
    )
    plain = reading.get(f"{root}/apis/apps/v1").json()
    listed = {str(resource["name"]) for resource in cast("list[Json]", plain["resources"])}
    return '"apps"' in new and '"apps"' in old and "deployments" in listed


def _items(listed: Json) -> list[Json]:
    return cast("list[Json]", listed["items"])
