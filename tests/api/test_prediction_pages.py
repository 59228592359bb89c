"""The pages about plans, drills, and the decisions of an observed control plane."""

import asyncio
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import httpx
import msgspec
import pytest

from engine.observer import report, shadow
from engine.plans import predictions
from engine.plans.questions import PlanError, Question
from engine.process import periodic_drills
from events import observations
from projections import store
from tests.api.servers import client, serving
from tests.api.story_records import moved, written
from tests.builders.inputs import capacity, deployment, health_reported, joined, key, policy, ref
from tests.builders.manifests import DYNAMIC, on
from tests.builders.manifests import deployment as manifest
from tests.deciders.story import START_MS, Story

APPS: Final = "apis/apps/v1/namespaces/default/deployments"


class Answering:
    """A planner that gives one prediction."""

    def __init__(self, prediction: predictions.Prediction) -> None:
        self._answer = msgspec.json.encode(prediction)

    async def predict(self, question: Question, progress: object) -> bytes:
        del question, progress
        return self._answer


class Waiting:
    """A planner whose plans end only if they are cancelled."""

    async def predict(self, question: Question, progress: object) -> bytes:
        del question, progress
        await asyncio.Event().wait()
        raise PlanError("never")


class Ending:
    """A planner whose plans fail when they may end."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    async def predict(self, question: Question, progress: object) -> bytes:
        del question, progress
        await self.ended.wait()
        raise PlanError("it ended")


async def planned(http: httpx.AsyncClient, **change: object) -> str:
    """Make a plan, wait until it ends, and return the path of its page."""
    plan = (await http.post("/api/v1/plans", json=change)).json()
    return await ended(http, f"/plans/{plan['id']}")


async def ended(http: httpx.AsyncClient, path: str) -> str:
    """Wait until the plan with this page ends; return the path."""
    for _ in range(1_000):
        if (await http.get(f"/api/v1{path}")).json().get("state", "running") != "running":
            return path
        await asyncio.sleep(0.01)
    raise AssertionError("the plan does not end")


async def test_plan_has_a_page_with_its_effect() -> None:
    async with serving(await moved()) as services, client(services) as http:
        assert "No plans yet" in (await http.get("/plans")).text
        path = await planned(http, failures=[{"member": "member2"}])
        body = manifest("new", 3, "default")
        added = await planned(http, requests=[{"method": "POST", "path": APPS, "body": body}])
        listed = (await http.get("/plans")).text
        page = (await http.get(path)).text
        new = (await http.get(added)).text
    assert listed.index(added) < listed.index(path), "the newest plan is the first"
    assert f'<a href="{path}">member2 down</a>' in listed
    assert f'<a href="{added}">template-applied {key("new")} with 3 replicas</a>' in listed
    assert "<h1><small>Plan</small> member2 down</h1>" in page
    assert "to change" in listed
    assert '<span class="badge scheduled">done</span>' in listed
    assert "Based on" in page
    assert "Events in virtual time" in page
    assert 'http-equiv="refresh"' not in page
    assert "template-applied" in new


async def test_plan_page_shows_each_workload_before_and_after() -> None:
    prediction = predictions.Prediction(
        number=7,
        time="2026-01-01T00:00:00Z",
        horizon_ms=1_800_000,
        settled_ms=2_500,
        is_settled=True,
        workloads=3,
        changed=[
            predictions.WorkloadChange(
                key=key("web"),
                template=ref("web"),
                before={"member1": 4, "member2": 2},
                after={"member2": 5},
                condition="Unschedulable",
                message="Clusters available replicas <5> are not enough to schedule.",
                stopped=4,
                started=3,
                ready_before=6,
                ready_min=2,
                ready_after=5,
                missing=1,
                missing_requests={"cpu": "1"},
            )
        ],
        unplaced=[key("web")],
        clusters=[
            predictions.ClusterChange(
                name="member2",
                allocatable={"cpu": "8"},
                before={"cpu": "2"},
                after={"cpu": "5"},
                peak={"cpu": "6"},
            )
        ],
        events=[],
        assumptions=["starts take 2 s"],
    )

    async with (
        serving() as services,
        client(dataclasses.replace(services, planner=Answering(prediction))) as http,
    ):
        page = (await http.get(await planned(http))).text
    for text in (
        "1 of 3 workloads to move, 4 replicas to stop, 3 to start, 1 workload cannot be placed",
        "ready 6 → 5, 2 meanwhile",
        "1 not placed",
        "member1: 4 → 0",
        "member2: 2 → 5",
        "Clusters available replicas &lt;5&gt; are not enough",
        '<td data-label="After">5</td><td data-label="Peak">6</td><td data-label="Allocatable">8</td>',
        "<li>starts take 2 s</li>",
    ):
        assert text in page, text
    gone_bar = page.index('<rect class="gone" x="0" width="192"')
    assert gone_bar < page.index('<rect class="wanted" x="96" width="144"'), "all bars have one scale"


async def test_failed_and_unknown_plans_have_pages() -> None:
    async with serving() as services, client(services) as http:
        page = (await http.get(await planned(http, failures=[{"member": "nowhere"}]))).text
        unknown = await http.get("/plans/nothing")
        refused = await http.get("/plans?asOf=1")
    assert '<span class="badge failed">failed</span>' in page
    assert "nowhere" in page
    assert (unknown.status_code, refused.status_code) == (404, 400)


@pytest.mark.parametrize(
    ("body", "change"),
    [
        ({"key": "maintenance", "effect": "NoExecute"}, "cluster-tainted member2 maintenance:NoExecute"),
        (None, "cluster-untainted member2 soon:NoSchedule"),
    ],
)
async def test_planned_taint_is_shown(body: object, change: str) -> None:
    patch = {
        "method": "PATCH",
        "path": "apis/cluster.karmada.io/v1alpha1/clusters/member2",
        "contentType": "application/merge-patch+json",
        "body": {"spec": {"taints": [body] if body else []}},
    }
    async with serving(await moved()) as services, client(services) as http:
        page = (await http.get(await planned(http, requests=[patch]))).text
    assert change in page[page.index("<h1>") : page.index("</h1>")]


async def test_long_change_and_empty_one_are_shown_in_one_line() -> None:
    async with serving(await moved()) as services, client(services) as http:
        for members in (("a", "b", "c", "d", "e"), ()):
            await planned(http, failures=[{"member": member} for member in members])
        await planned(http, outage={"domain": "zone", "name": "z", "clusters": ["member1", "member2"]})
        listed = (await http.get("/plans")).text
    assert "a down, b down, c down and 2 more</a>" in listed
    assert "no change</a>" in listed
    assert "failure of zone z</a>" in listed


async def test_running_plan_shows_its_progress_and_loads_itself_again() -> None:
    async with serving() as services, client(dataclasses.replace(services, planner=Waiting())) as http:
        plan = (await http.post("/api/v1/plans", json={})).json()
        page = (await http.get(f"/plans/{plan['id']}")).text
        listed = (await http.get("/plans")).text
        await http.delete(f"/api/v1/plans/{plan['id']}")
    for text in (page, listed):
        assert "of 30 min passed in virtual time" in text
        assert '<meta http-equiv="refresh" content="2">' in text


async def test_plan_that_was_shown_while_it_ran_shows_its_effect_when_it_is_done() -> None:
    planner = Ending()
    async with serving() as services, client(dataclasses.replace(services, planner=planner)) as http:
        plan = (await http.post("/api/v1/plans", json={})).json()
        assert "passed in virtual time" in (await http.get("/plans")).text
        planner.ended.set()
        await ended(http, f"/plans/{plan['id']}")
        listed = (await http.get("/plans")).text
    assert "passed in virtual time" not in listed
    assert "it ended" in listed


async def test_drill_page_shows_the_drill_of_a_client() -> None:
    async with serving(await moved()) as services, client(services) as http:
        for name in ("member1", "member2"):
            await planned(http, outage={"domain": "cluster", "name": name, "clusters": [name]}, asOf="8")
        page = (await http.get("/drills")).text
        assert ("cluster member1" in page, "cluster member2" in page) == (True, True)
        await planned(http, outage={"domain": "zone", "name": "z", "clusters": ["member1"]})
        page = (await http.get("/drills")).text
        assert ("cluster member1" in page, "zone z" in page) == (False, True), "from another number"


async def test_drill_page_shows_failures_that_cost_most_first() -> None:
    story = Story()
    await story.submit(joined("member1"), joined("member2"), capacity("member1", 8), capacity("member2", 2))
    await story.submit(policy("p", on("member1", "member2", scheduling=DYNAMIC)), deployment("web", 5))
    await story.submit(joined("empty"))
    await story.report(key("web"), "member1")
    await story.report(key("web"), "member2")
    async with serving(await written(story)) as services, client(services) as http:
        assert "No drill has ended yet." in (await http.get("/drills")).text
        await periodic_drills.Drills(
            services, services.planner, services.periodic_drills, 60.0, lambda: START_MS + 60_000
        ).drill()
        page = (await http.get("/drills")).text
    assert page.index("cluster member1") < page.index("cluster member2") < page.index("cluster empty")
    assert f'<a href="/bindings/{key("web")}">{key("web")}</a>' in page
    assert "replicas not placed" in page
    assert "needs " not in page, "nothing evicts the replicas, so capacity elsewhere would not help"
    assert '<span class="badge scheduled">absorbed</span>' in page


async def test_replicas_in_a_cluster_that_is_down_already_need_no_other_cluster() -> None:
    story = Story()
    await story.submit(joined("member1"), joined("member2"), capacity("member1", 2), capacity("member2", 2))
    await story.submit(policy("p", on("member1", "member2", scheduling=DYNAMIC)), deployment("web", 4))
    await story.report(key("web"), "member1")
    await story.submit(health_reported("member2", ready=False))
    async with serving(await written(story)) as services, client(services) as http:
        await planned(http, outage={"domain": "cluster", "name": "member1", "clusters": ["member1"]})
        page = (await http.get("/drills")).text
    assert "4 replicas not placed" in page
    assert "needs " not in page


@pytest.fixture
def damaged(tmp_path: Path) -> Iterator[store.Reader]:
    path = tmp_path / store.FILE
    store.Store(path).close()
    reader = store.Reader(path)
    path.write_bytes(b"\xff" * path.stat().st_size)
    yield reader
    reader.close()


async def test_drills_continue_after_the_views_were_damaged(damaged: store.Reader) -> None:
    async with serving() as sound:
        views = SimpleNamespace(store=damaged, folded=0, wait_folded=sound.views.wait_folded)
        services = dataclasses.replace(sound, views=views)  # pyright: ignore[reportArgumentType]
        drills = asyncio.create_task(
            periodic_drills.Drills(
                services, services.planner, services.periodic_drills, 0.05, lambda: START_MS
            ).run()
        )
        await asyncio.sleep(0.2)
        assert not drills.done()
        views.store = sound.views.store
        async with asyncio.timeout(5):
            while not services.periodic_drills.ended_ms:  # noqa: ASYNC110  # the page polls as well
                await asyncio.sleep(0.01)
        services.stopping.set()
        await drills


@pytest.mark.parametrize("name", ["web-deployment", "<b>web</b>"])
async def test_shadow_page_shows_verdicts_and_differences(name: str) -> None:
    comparison = report.Report()
    async with serving() as services:
        async with client(services) as http:
            assert "observes no other control plane" in (await http.get("/shadow")).text
        async with client(dataclasses.replace(services, compared=comparison)) as http:
            assert "No decisions compared yet" in (await http.get("/shadow")).text
            for verdict in (shadow.SAME, shadow.SAME, shadow.SAME, shadow.RACE):
                comparison.take(compared(name, verdict))
            page = (await http.get("/shadow")).text
    assert "4 decisions of Karmada" in page
    assert "75.00%" in page
    assert "<dd>member1: 3</dd>" in page
    assert "<dd>member2: 3</dd>" in page
    assert "capacity 9, weight 9" in page
    assert "<b>" not in page


def compared(name: str, verdict: str) -> observations.DecisionCompared:
    return observations.DecisionCompared(
        kind="ResourceBinding",
        name=name,
        namespace="shop",
        version=12,
        basis=11,
        verdict=verdict,
        why="" if verdict == shadow.SAME else "the clusters at 9 give the same",
        observed=observations.ShadowCondition(clusters={"member1": 3}, reason="Success", message=""),
        computed=observations.ShadowCondition(clusters={"member2": 3}, reason="Success", message=""),
        reasons=(observations.ShadowReason(cluster="member1", allocatable=9, weight=9),),
    )
