"""The dynamic client of the Kubernetes Python client, with kinds of each sort."""

# The library's annotations say too little, or that everything may be absent.
# pyright: reportOptionalMemberAccess=false, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportMissingParameterType=false

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from kubernetes import config
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic import DynamicClient

from events.json_values import Json
from tests.builders.manifests import definition, deployment, manifest, on, policy, rebalancer, selector
from tests.clients.servers import disconnect
from tests.processes import Server
from tests.waiting import until

DEPLOYMENT = deployment("web", 3, metadata={"labels": {"app": "web"}})
POLICY = policy("web", on("member1", "member2"), selector("web"))
REBALANCER = rebalancer("of-web", selector("web", namespace="default"))
SECRET = manifest("v1", "Secret", "keys", stringData={"a": "b"}, type="Opaque")
ROLE = manifest(
    "rbac.authorization.k8s.io/v1",
    "ClusterRole",
    "readers",
    rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
)
DEFINITION = definition("gadgets", "Gadget", "example.com")
EACH = [DEPLOYMENT, POLICY, REBALANCER, SECRET, ROLE]


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[DynamicClient]:
    api = config.new_client_from_config(config_file=str(server.directory / "kubeconfig"))
    yield DynamicClient(api)
    disconnect(api)


@pytest.fixture
def create(client: DynamicClient) -> Iterator[Callable[[Json], object]]:
    """Create objects that are deleted after the test."""
    done: list[Callable[[], object]] = []

    def make(value: Json) -> object:
        kind = client.resources.get(api_version=value["apiVersion"], kind=value["kind"])
        where = {"namespace": "default"} if kind.namespaced else {}
        created = kind.create(body=value, **where)
        done.append(partial(kind.delete, name=created.metadata.name, **where))
        return created

    yield make
    for undo in reversed(done):
        undo()


@pytest.mark.parametrize("value", EACH, ids=lambda value: value["kind"])
def test_object_is_created_changed_listed_and_deleted(client: DynamicClient, value: Json) -> None:
    kind = client.resources.get(api_version=value["apiVersion"], kind=value["kind"])
    where = {"namespace": "default"} if kind.namespaced else {}
    made = kind.create(body=value, **where)
    name = made.metadata.name
    try:
        with pytest.raises(ApiException) as refused:
            kind.create(body=value, **where)
        assert (refused.value.status, refused.value.reason) == (409, "Conflict")

        merge = "application/merge-patch+json"
        labelled = kind.patch(
            name=name, body={"metadata": {"labels": {"tier": "gold"}}}, content_type=merge, **where
        )
        assert labelled.metadata.labels["tier"] == "gold"
        stale = made.to_dict()
        stale["metadata"]["annotations"] = {"note": "late"}
        with pytest.raises(ApiException) as late:
            kind.replace(body=stale, **where)
        assert late.value.status == 409
        if value is REBALANCER:
            # Its status changes its version until it has finished.
            until(lambda: "finishTime" in (kind.get(name=name).to_dict().get("status") or {}))
        fresh = kind.get(name=name, **where).to_dict()
        fresh["metadata"].setdefault("annotations", {})["note"] = "in time"
        assert kind.replace(body=fresh, **where).metadata.annotations["note"] == "in time"

        listed = kind.get(label_selector="tier=gold", **where)
        assert [item.metadata.name for item in listed.items] == [name]
        applied = kind.server_side_apply(
            body=manifest(
                value["apiVersion"], value["kind"], name, metadata={"annotations": {"applied": "yes"}}
            ),
            name=name,
            field_manager="tests",
            **where,
        )
        assert applied.metadata.annotations["applied"] == "yes"
        assert applied.metadata.annotations["note"] == "in time"
    finally:
        kind.delete(name=name, **where)
    with pytest.raises(ApiException) as error:
        kind.get(name=name, **where)
    assert error.value.status == 404


def test_decision_is_read_from_the_binding(client: DynamicClient, create: Callable[[Json], object]) -> None:
    create(POLICY)
    create(DEPLOYMENT)
    bindings = client.resources.get(api_version="work.karmada.io/v1alpha2", kind="ResourceBinding")
    deployments = client.resources.get(api_version="apps/v1", kind="Deployment")

    def is_ready() -> bool:
        status = deployments.get(name="web", namespace="default").status
        return status is not None and bool(status.readyReplicas == 6)

    until(is_ready)
    chosen = bindings.get(name="web-deployment", namespace="default").spec.clusters
    assert [(target.name, target.replicas) for target in chosen] == [("member1", 3), ("member2", 3)]


def test_newly_defined_kind_is_usable(client: DynamicClient, create: Callable[[Json], object]) -> None:
    create(DEFINITION)
    client.resources.invalidate_cache()
    gadgets = client.resources.get(api_version="example.com/v1", kind="Gadget")
    body = manifest("example.com/v1", "Gadget", "one", spec={"n": 1})
    assert gadgets.create(body=body, namespace="default").spec.n == 1
    assert gadgets.delete(name="one", namespace="default").status == "Success"


def test_dynamic_client_watches_changes(client: DynamicClient, create: Callable[[Json], object]) -> None:
    maps = client.resources.get(api_version="v1", kind="ConfigMap")
    version = maps.get(namespace="default").metadata.resourceVersion
    for name in ("one", "two"):
        create(manifest("v1", "ConfigMap", name))
    changes = []
    for event in maps.watch(namespace="default", resource_version=version, timeout=60):
        changes.append((event["type"], event["object"].metadata.name))
        if len(changes) == 2:
            break
    assert changes == [("ADDED", "one"), ("ADDED", "two")]
