"""Protobuf bodies of the real kubectl are decoded to the object that the same kubectl prints as JSON."""

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from engine.kubeapi.schema import resources
from engine.kubeapi.wire import protobuf
from events.json_values import object_at, without_nulls
from tests.kube import recording

COMMANDS = (
    "deployment nginx --image nginx --image redis --replicas 0",
    "deployment web --image nginx --replicas 3 --port 80",
    "configmap settings --from-literal colour=blue --from-literal size=",
    "namespace shop",
    "secret generic keys --from-literal password=hidden",
    "secret docker-registry pull --docker-username me --docker-password x --docker-server here",
    "serviceaccount robot",
    "clusterrole reader --verb get,list --resource pods,deployments.apps",
    "clusterrole caller --verb get --non-resource-url /healthz",
    "clusterrole gathered --aggregation-rule rbac.example.com/to=monitoring",
    "clusterrolebinding readers --clusterrole reader --user me --group us --serviceaccount shop:robot",
    "role reader --verb get --resource pods --resource-name one",
    "rolebinding readers --role reader --serviceaccount shop:robot",
    "job once --image busybox -- sh -c true",
    "cronjob nightly --image busybox --schedule @daily --restart OnFailure",
    "service clusterip web --tcp 80:8080",
    "service nodeport web --tcp 80:http",
    "service loadbalancer web --tcp 5678",
    "service externalname web --external-name example.com",
    "ingress web --class nginx --rule example.com/shop*=web:80,tls=cert --annotation a=b",
    "priorityclass high --value 1000 --global-default --preemption-policy Never",
    "poddisruptionbudget web --selector app=web --min-available 50%",
    "poddisruptionbudget web --selector app=web --max-unavailable 1",
    "quota little --hard cpu=1,memory=1Gi,pods=2 --scopes BestEffort",
)


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Generator[recording.Kubectl]:
    if shutil.which("kubectl") is None:
        pytest.fail("no kubectl on the PATH; install one (1.32 or later sends protobuf)")
    folder: Path = tmp_path_factory.mktemp("kubectl")
    with recording.kubectl(folder) as kubectl:
        yield kubectl


def _compare(kubectl: recording.Kubectl, program: str, command: str) -> str:
    """Return the format in which the command sends; for protobuf, both objects must be equal."""
    words = ("create", *command.split())
    sent = kubectl.posts(program, *words)
    if sent.content_type == protobuf.MEDIA_TYPE:
        resource = resources.built_in().of_kind(*protobuf.kind_of(sent.body))
        assert resource
        read = protobuf.decode(sent.body, resource.schema, depth_max=64)
        assert _without_namespace(read) == _without_namespace(without_nulls(kubectl.dry(program, *words)))
    return sent.content_type


def _without_namespace(value: object) -> object:
    """Drop the namespace: the client fills it in only in its output."""
    fields = object_at(value)
    metadata = object_at(fields, "metadata")
    return {**fields, "metadata": {name: item for name, item in metadata.items() if name != "namespace"}}


@pytest.mark.parametrize("command", COMMANDS)
def test_protobuf_body_equals_the_printed_object(kubectl: recording.Kubectl, command: str) -> None:
    program = recording.programs()[-1]
    assert _compare(kubectl, program, command) == protobuf.MEDIA_TYPE


@pytest.mark.slow
@pytest.mark.parametrize("program", recording.programs())
def test_every_installed_kubectl_is_decoded(kubectl: recording.Kubectl, program: str) -> None:
    assert _compare(kubectl, program, COMMANDS[0]) in {protobuf.MEDIA_TYPE, "application/json"}


@pytest.mark.parametrize(
    ("words", "kind", "field"),
    [
        ("can-i create deployments.apps -n shop", "SelfSubjectAccessReview", "spec"),
        ("can-i --list -n shop", "SelfSubjectRulesReview", "spec"),
        ("whoami", "SelfSubjectReview", "status"),
    ],
)
def test_authorization_reviews_are_decoded(
    kubectl: recording.Kubectl, words: str, kind: str, field: str
) -> None:
    sent = kubectl.posts(recording.programs()[-1], "auth", *words.split())
    resource = resources.built_in().of_kind(*protobuf.kind_of(sent.body))
    assert resource
    read = protobuf.decode(sent.body, resource.schema, depth_max=64)
    assert read["kind"] == kind
    assert field in read
