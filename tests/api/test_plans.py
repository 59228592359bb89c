"""Plans over HTTP: requests to the Kubernetes API, predicted and not made."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
import pytest

from engine.http.plans import jobs
from engine.http.plans.routes import BODY_BYTES_MAX, FAILURES_BYTES_MAX
from engine.plans.questions import PlanError, Question
from events import records, topics
from events.json_values import Json
from tests.api import story_records
from tests.api.servers import client, kube_client, serving
from tests.builders.manifests import definition, deployment, manifest

APPS: Final = "apis/apps/v1/namespaces/default/deployments"
DEFINITIONS: Final = "apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GIZMOS: Final = "apis/example.io/v1/namespaces/default/gizmos"
WEB: Final = {"method": "POST", "path": APPS, "body": deployment("web", 3, "default")}


@asynccontextmanager
async def running() -> AsyncGenerator[httpx.AsyncClient]:
    async with serving() as services, client(services) as caller:
        yield caller


async def finished(caller: httpx.AsyncClient, answer: httpx.Response) -> Any:  # noqa: ANN401  # JSON
    """Return a plan once it is no longer running."""
    assert answer.status_code == 202, answer.text
    path = f"/api/v1/plans/{answer.json()['id']}"
    for _ in range(1_000):
        plan = (await caller.get(path)).json()
        if plan.get("state", "running") != "running":
            return plan
        await asyncio.sleep(0.01)
    raise AssertionError("the plan does not end")


async def make(caller: httpx.AsyncClient, **change: object) -> httpx.Response:
    return await caller.post("/api/v1/plans", json=change)


async def test_planned_request_is_predicted_and_not_made() -> None:
    async with running() as caller:
        plan = await finished(caller, await make(caller, requests=[WEB]))
        assert plan["state"] == "done"
        events = plan["prediction"]["events"]
        assert [event["type"] for event in events] == ["io.reballast.template-applied.v1"]
        assert (await caller.get("/api/v1/objects", params={"kind": "deploy"})).json()["items"] == []
        listed = (await caller.get("/api/v1/plans")).json()["items"]
        assert [summary["id"] for summary in listed] == [plan["id"]]
        assert "prediction" not in listed[0]


async def test_requests_build_on_the_ones_before() -> None:
    path = f"{APPS}/web"
    patch = {"method": "PATCH", "path": path, "contentType": "application/merge-patch+json"}
    requests = [
        WEB,
        {**patch, "body": {"metadata": {"labels": {"tier": "front"}}}},
        {**patch, "body": {"spec": {"replicas": 5}}},
        {"method": "POST", "path": DEFINITIONS, "body": definition("gizmos", "Gizmo")},
        {"method": "POST", "path": GIZMOS, "body": manifest("example.io/v1", "Gizmo", "one")},
        {"method": "DELETE", "path": path},
        WEB,
    ]
    async with running() as caller:
        plan = await finished(caller, await make(caller, requests=requests))
        assert (plan["state"], plan["prediction"]["refused"]) == ("done", [])
        kinds = [event["type"].removeprefix("io.reballast.") for event in plan["prediction"]["events"]]
        assert kinds == [*["template-applied.v1"] * 5, "template-deleted.v1", "template-applied.v1"]
        third = plan["prediction"]["events"][2]["data"]["manifest"]
        assert (third["spec"]["replicas"], third["metadata"]["labels"]) == (5, {"tier": "front"})
        answer = await make(caller, requests=[WEB, WEB])
        assert 'deployments.apps "web" already exists' in answer.json()["error"]["reason"]


async def test_deletion_is_planned_with_the_dependents_of_the_object() -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    async with serving() as services, client(services) as caller, kube_client(services) as kube:
        owners: list[Json] = []
        for name in ("root", "middle", "leaf"):
            value = manifest("v1", "ConfigMap", name, metadata={"ownerReferences": owners})
            created = (await kube.post(maps, json=value)).json()
            uid = created["metadata"]["uid"]
            owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}]
        delete = {"method": "DELETE", "path": f"{maps.removeprefix('/')}/root"}
        plan = await finished(caller, await make(caller, requests=[delete]))
        assert (await kube.get(f"{maps}/root")).status_code == 200
    deleted = [event["data"]["template"]["name"] for event in plan["prediction"]["events"]]
    assert deleted == ["root", "middle", "leaf"]


async def test_deletion_of_a_definition_is_planned_with_the_objects_of_its_kind() -> None:
    async with serving() as services, client(services) as caller, kube_client(services) as kube:
        for path, value in (
            (DEFINITIONS, definition("gizmos", "Gizmo")),
            (GIZMOS, manifest("example.io/v1", "Gizmo", "first")),
        ):
            assert (await kube.post(f"/{path}", json=value)).status_code == 201
        delete = {"method": "DELETE", "path": f"{DEFINITIONS}/gizmos.example.io"}
        plan = await finished(caller, await make(caller, requests=[delete]))
    deleted = [event["data"]["template"]["name"] for event in plan["prediction"]["events"]]
    assert deleted == ["first", "gizmos.example.io"]


async def test_bootstrap_object_is_planned_on_an_empty_log() -> None:
    role = "apis/rbac.authorization.k8s.io/v1/clusterroles/view"
    patch = {
        "method": "PATCH",
        "path": role,
        "contentType": "application/merge-patch+json",
        "body": {"metadata": {"labels": {"tier": "gold"}}},
    }
    async with running() as caller:
        plan = await finished(caller, await make(caller, requests=[patch, patch]))
    labels = [event["data"]["manifest"]["metadata"]["labels"] for event in plan["prediction"]["events"]]
    assert [label["tier"] for label in labels] == ["gold"]


async def test_changes_of_one_cluster_build_on_the_ones_before() -> None:
    clusters = "apis/cluster.karmada.io/v1alpha1/clusters"
    member = manifest("cluster.karmada.io/v1alpha1", "Cluster", "extra", spec={"syncMode": "Pull"})
    patch = {
        "method": "PATCH",
        "path": f"{clusters}/extra",
        "contentType": "application/merge-patch+json",
    }
    requests = [
        {"method": "POST", "path": clusters, "body": member},
        {**patch, "body": {"metadata": {"annotations": {"owner": "ann"}}}},
        {**patch, "body": {"metadata": {"labels": {"tier": "gold"}}, "spec": {"region": "north"}}},
    ]
    async with running() as caller:
        plan = await finished(caller, await make(caller, requests=requests))
        assert (plan["state"], plan["prediction"]["refused"]) == ("done", [])
        joined = [event["data"] for event in plan["prediction"]["events"] if "joined" in event["type"]]
        assert len(joined) == 3
        last = joined[-1]
        assert (last["annotations"], last["labels"], last["region"]) == (
            {"owner": "ann"},
            {"tier": "gold"},
            "north",
        )
        answer = await make(caller, requests=[requests[0], requests[0]])
        assert 'clusters.cluster.karmada.io "extra" already exists' in answer.json()["error"]["reason"]


async def test_error_names_the_request_that_the_api_refuses() -> None:
    async with running() as caller:
        wrong = deployment("other", 3, "default")
        wrong["spec"] = {**wrong["spec"], "replcas": 3}  # type: ignore[dict-item]
        path = f"{APPS}?fieldValidation=Strict"
        answer = await make(caller, requests=[WEB, {**WEB, "path": path, "body": wrong}])
        assert answer.status_code == 422
        error = answer.json()["error"]
        assert error["field"] == f"requests[1]: POST {path}"
        assert "replcas" in error["reason"]


@pytest.mark.parametrize(
    "request_",
    [
        {"method": "DELETE", "path": "api/v1/namespaces/default"},
        {
            "method": "POST",
            "path": "apis/cluster.karmada.io/v1alpha1/clusters/member1/proxy/api/v1/namespaces",
        },
        {
            "method": "POST",
            "path": "apis/cluster.karmada.io/v1alpha1/clusters/member1/%70roxy/api/v1/namespaces",
        },
        {"method": "DELETE", "path": "api/v1/nodes/../namespaces/default"},
        {"method": "POST", "path": "api/v1/namespaces/default/serviceaccounts/default/token"},
    ],
    ids=["namespace", "member", "encoded", "normalized", "token"],
)
async def test_request_with_effects_outside_the_log_is_refused(request_: dict[str, str]) -> None:
    async with running() as caller:
        answer = await make(caller, requests=[request_])
        assert answer.status_code == 422
        assert "can't be planned" in answer.json()["error"]["reason"]


@pytest.mark.parametrize("path", ["http://[::1", "\x00", "http://host:port/"])
async def test_path_that_is_none_is_refused(path: str) -> None:
    async with running() as caller:
        answer = await make(caller, requests=[{**WEB, "path": path}])
        assert answer.status_code == 422
        assert answer.json()["error"]["field"] == "requests[0].path"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"requests": [{**WEB, "contentType": "é"}]}, "contentType"),
        ({"requsts": []}, "unknown field `requsts`"),
        ({"horizonMs": -1}, ">= 0"),
        ({"failures": [{"member": "a", "kind": "tired"}]}, "tired"),
    ],
)
async def test_invalid_change_is_refused(change: dict[str, object], reason: str) -> None:
    async with running() as caller:
        answer = await make(caller, **change)
        assert answer.status_code == 400
        assert reason in answer.json()["error"]["reason"]


@pytest.mark.parametrize("after_ms", [-1, 60_001])
async def test_failure_outside_of_the_predicted_time_is_refused(after_ms: int) -> None:
    late = [{"member": "member1"}, {"member": "member1", "afterMs": after_ms}]
    async with running() as caller:
        answer = await make(caller, failures=late, horizonMs=60_000)
        assert answer.status_code == 422
        assert answer.json()["error"]["field"] == "failures[1].afterMs"


async def test_failure_of_an_unknown_cluster_fails_the_plan() -> None:
    async with running() as caller:
        answer = await make(caller, failures=[{"member": "nowhere"}])
        plan = await finished(caller, answer)
        assert plan["state"] == "failed"
        assert "nowhere" in plan["reason"]


async def test_deleted_plan_is_not_found() -> None:
    async with running() as caller:
        plan = await finished(caller, await make(caller))
        path = f"/api/v1/plans/{plan['id']}"
        assert (await caller.delete(path)).status_code == 204
        assert (await caller.get(path)).status_code == 404
        assert (await caller.delete(path)).status_code == 404


class Endless:
    """A planner whose plans end only if they are cancelled."""

    def __init__(self) -> None:
        self.cancelled = 0

    async def predict(self, question: Question, progress: object) -> bytes:
        del question, progress
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled += 1
        raise PlanError("never")


async def test_number_of_running_plans_is_bounded_and_deletion_ends_one() -> None:
    planner = Endless()
    kept = jobs.Jobs(planner, lambda: 0)
    question = Question(began_ms=0)
    plans = [kept.start(question, []) for _ in range(jobs.RUNNING_MAX)]
    with pytest.raises(jobs.RefusalError, match="running already"):
        kept.start(question, [])
    await asyncio.sleep(0)
    await kept.delete(plans[0].id)
    assert planner.cancelled == 1
    assert kept.start(question, []).id in {plan.id for plan in kept.all()}
    for plan in kept.all():
        await kept.delete(plan.id)


class Sized:
    """A planner whose predictions have a size."""

    def __init__(self, size: int) -> None:
        self._size = size

    async def predict(self, question: Question, progress: object) -> bytes:
        del question, progress
        return b'"' + b"x" * self._size + b'"'


@pytest.mark.parametrize(
    ("predicted", "warned"), [(jobs.KEPT_BYTES_MAX // 4, 0), (0, jobs.KEPT_BYTES_MAX // 4)]
)
async def test_memory_of_kept_plans_is_bounded(predicted: int, warned: int) -> None:
    kept = jobs.Jobs(Sized(predicted), lambda: 0)
    made: list[jobs.Plan] = []
    for _ in range(6):
        made.append(kept.start(Question(began_ms=0), ["w" * warned]))
        await asyncio.sleep(0.01)
    assert [plan.id for plan in kept.all()] == [plan.id for plan in made[-3:]]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b" " * (BODY_BYTES_MAX + 1), 413),
        (b'{"requests":[{"method":"POST","path":"x","body":' + b"[" * 100_000 + b"]" * 100_000 + b"}]}", 400),
    ],
)
async def test_plan_that_is_too_large_or_nested_too_deeply_is_refused(body: bytes, status: int) -> None:
    async with running() as caller:
        assert (await caller.post("/api/v1/plans", content=body)).status_code == status


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        ({"failures": [{"member": "a"}] * (FAILURES_BYTES_MAX // 14)}, 413, "has more than 1048576 bytes"),
        (
            {"outage": {"domain": "zone", "name": "a", "clusters": ["a"] * (FAILURES_BYTES_MAX // 3)}},
            413,
            "has more than 1048576 bytes",
        ),
        # This error, not that of a list, shows that decoding stopped at the limit.
        ({"requests": [{"method": "PUT", "path": "a"}] * 10_000}, 400, "of at most length 1000"),
    ],
)
async def test_plan_with_too_many_parts_is_refused_before_they_are_decoded(
    change: dict[str, object], status: int, reason: str
) -> None:
    async with running() as caller:
        answer = await make(caller, **change)
        assert (answer.status_code, reason in answer.text) == (status, True), answer.text


async def test_object_named_like_a_subresource_is_planned() -> None:
    requests = [
        {"method": "POST", "path": APPS, "body": deployment("proxy", 3, "default")},
        {"method": "DELETE", "path": f"{APPS}/proxy"},
        {"method": "POST", "path": "api/v1/namespaces", "body": manifest("v1", "Namespace", "token", "")},
        {
            "method": "POST",
            "path": APPS.replace("default", "token"),
            "body": deployment("web", 1, "token"),
        },
    ]
    async with running() as caller:
        plan = await finished(caller, await make(caller, requests=requests))
        assert (plan["state"], plan["prediction"]["refused"]) == ("done", [])


async def test_plan_may_have_as_many_requests_as_the_limit_allows() -> None:
    request: dict[str, object] = {"method": "PATCH", "path": f"{APPS}/absent", "body": {}}
    async with running() as caller:
        answer = await make(caller, requests=[request] * 1_000)
        assert (answer.status_code, answer.json()["error"]["field"][:11]) == (422, "requests[0]")


async def test_plan_starts_at_a_number_long_after_the_last_step() -> None:
    inputs = [records.record(topics.SPECS, 0, f"input-{count}", {}, b"") for count in range(2_100)]
    async with serving([*await story_records.moved(), *inputs]) as services, client(services) as caller:
        number = services.log.last_number()
        plan = await finished(caller, await make(caller, asOf=str(number)))
        assert (plan["state"], plan["prediction"]["number"]) == ("done", number)


async def test_plan_at_a_number_before_all_steps_is_refused() -> None:
    async with (
        serving([records.record(topics.SPECS, 0, "input", {}, b"")]) as services,
        client(services) as caller,
    ):
        answer = await make(caller, asOf="1")
        assert (answer.status_code, answer.json()["error"]["field"]) == (400, "asOf")
