"""The HTML pages: content, snapshots at a position, and escaping of names."""

import html
import re

import msgspec
import pytest

from engine.cli.karmada import states
from engine.http.pages import binding_values, cluster_values
from engine.log.local import MemoryLog
from engine.objects import bindings
from events import clusters, codec, json_values, observations, records
from events.json_values import Json
from events.kube_objects import KubeObject
from tests.api.servers import client, serving
from tests.api.story_records import WEB, moved, written
from tests.builders.inputs import (
    capacity,
    deployment,
    joined,
    policy,
    policy_deleted,
    quota,
    tainted,
)
from tests.builders.manifests import on
from tests.deciders.story import Story
from tests.projections.logs import RecordBuilder
from tests.projections.stories import decided, declared


def binding(*targets: tuple[str, int], **ready: int) -> bindings.Binding:
    """Return a binding with these targets, and with this many ready replicas per cluster."""
    reports = [
        {"clusterName": name, "applied": True, "status": {"replicas": count, "readyReplicas": count}}
        for name, count in ready.items()
    ]
    document: Json = {
        "metadata": {"name": "foo-deployment", "namespace": "default"},
        "spec": {
            "resource": {"kind": "Deployment", "name": "foo"},
            "replicas": sum(count for _, count in targets),
            "clusters": [{"name": name, "replicas": count} for name, count in targets],
        },
        "status": {"conditions": [], "aggregatedStatus": reports},
    }
    return bindings.of(KubeObject(document))


def test_all_bars_of_a_page_have_one_scale() -> None:
    small, large = binding_values.rows(
        [binding(("member1", 2), ("member2", 1), member1=1), binding(("member1", 6), member1=6)]
    )

    assert [(bar.wanted_pixels, bar.ready_pixels, bar.pending) for bar in small.bars] == [
        (80, 40, 1),
        (40, 0, 1),
    ]
    assert [(bar.wanted_pixels, bar.ready_pixels, bar.pending) for bar in large.bars] == [(240, 240, 0)]
    assert (small.ready, small.replicas) == (1, 3)


def test_cluster_being_left_is_shown_while_replicas_run_there() -> None:
    (row,) = binding_values.rows([binding(("member2", 3), member1=2, member2=1, member3=0)])

    assert [(bar.cluster, bar.leaving, bar.running) for bar in row.bars] == [
        ("member2", False, 1),
        ("member1", True, 2),
    ]
    assert row.ready == 1


@pytest.mark.parametrize(
    ("allocated", "allocating", "words", "percent", "pixels"),
    [
        ("0", "0", "0 B of 12.5 TiB", 0, (0, 0)),
        ("1Gi", "512Mi", "1.5 GiB of 12.5 TiB", 0, (1, 1)),
        ("6400Gi", "0", "6.2 TiB of 12.5 TiB", 50, (60, 60)),
        ("12800Gi", "12800Gi", "25 TiB of 12.5 TiB", 200, (120, 120)),
    ],
)
def test_meter_shows_the_used_capacity(
    allocated: str, allocating: str, words: str, percent: int, pixels: tuple[int, int]
) -> None:
    summary = {
        name: {"memory": amount}
        for name, amount in (("allocatable", "12800Gi"), ("allocated", allocated), ("allocating", allocating))
    }
    row = cluster_values.row(
        cluster_values.read(KubeObject({"metadata": {"name": "m"}, "status": {"resourceSummary": summary}}))
    )

    (meter,) = row.meters
    assert (meter.text, meter.percent) == (words, percent)
    assert (meter.allocated_pixels, meter.used_pixels) == pixels


def test_cluster_that_is_removed_is_shown_as_such() -> None:
    metadata = {"name": "m", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    row = cluster_values.row(cluster_values.read(KubeObject({"metadata": metadata, "status": ready})))
    assert (row.state, row.message) == (
        "removing",
        "since 2026-01-01T00:00:00Z; removed when its workloads are deleted",
    )


def test_missing_json_parts_are_empty() -> None:
    assert json_values.object_at({"spec": 3}, "spec", "clusters") == {}
    assert json_values.objects_at(None) == []
    assert json_values.texts({"a": 1}) == []
    assert KubeObject({"status": {"conditions": [{"type": "Ready"}]}}).condition("Scheduled") == {}


async def test_list_page_shows_replicas_and_scheduling_failures() -> None:
    async with serving(await moved()) as services, client(services) as http:
        page = (await http.get("/")).text

    assert 'aria-label="0 of 3 replicas are ready"' in page
    assert "0/3 ready, 3 pending" in page
    assert "evicting from member1: TaintUntolerated" in page
    assert f'<a href="/bindings/{WEB}">web</a>' in page
    assert "NoClusterFit" in page
    assert "1 cluster(s) had untolerated taint {soon:NoSchedule}" in page


async def test_unclaimed_workload_that_runs_nowhere_is_shown_as_failed() -> None:
    story = Story()
    await story.submit(joined("member1"), capacity("member1", 6))
    await story.submit(deployment("web", 1), policy("p", on("member1")))
    await story.submit(policy_deleted("p"))
    await story.submit(tainted("member1", "NoExecute"))
    await story.submit(clusters.ClusterLeft(name="member1"))
    async with serving(await written(story)) as services, client(services) as http:
        for path in ("/", f"/bindings/{WEB}"):
            page = (await http.get(path)).text
            assert '<span class="badge failed">Unclaimed</span>' in page
            assert "nowhere" in page
            assert "badge scheduled" not in page


async def test_binding_page_shows_placement_reason_and_events() -> None:
    async with serving(await moved()) as services, client(services) as http:
        page = (await http.get(f"/bindings/{WEB}")).text
        alone = (await http.get(f"/explain/{WEB}")).text

    assert "Placed by PropagationPolicy default/p." in page
    for text in (page, alone):
        assert "cluster(s) had untolerated taint {maintenance:NoExecute}" in text
    events = [
        event for event in ("eviction-started", "schedule-decided", "template-applied") if event in page
    ]
    assert events == ["eviction-started", "schedule-decided", "template-applied"]
    assert "Events, newest first" in page
    assert page.rindex("eviction-started") < page.rindex("template-applied")
    assert f'data-feed="/api/v1/live?key={WEB.replace("/", "%2F")}"' in page


async def test_clusters_that_a_quota_refuses_are_not_shown_as_chosen() -> None:
    story = Story()
    await story.submit(joined("member1"), capacity("member1", 6), quota("few", cpu="1"))
    await story.submit(deployment("web", 2), policy("p", on("member1")))
    async with serving(await written(story)) as services, client(services) as http:
        page = (await http.get(f"/bindings/{WEB}")).text
    assert "<h3>Clusters: 2 replicas in each cluster; not applied: QuotaExceeded</h3>" in page
    assert 'class="chosen"' not in page


async def test_binding_page_before_the_binding_exists_shows_its_timeline() -> None:
    async with serving(await moved()) as services, client(services) as http:
        numbers = [entry["number"] for entry in (await http.get(f"/api/v1/timeline/{WEB}")).json()["items"]]
        page = (await http.get(f"/bindings/{WEB}?asOf={numbers[0]}")).text

    assert "This binding does not exist at this number of the log." in page
    assert "template-applied" in page


async def test_binding_page_before_the_decision_has_no_link_to_an_explanation() -> None:
    batch = await moved()
    types = [record.headers["ce_type"] for record in batch]
    number = next(at for at, name in enumerate(types, start=1) if "binding-declared" in name)
    async with serving(batch) as services, client(services) as http:
        page = (await http.get(f"/bindings/{WEB}?asOf={number}")).text

    assert "<h2>Explanation</h2>\n\n<p>No decision yet.</p>" in page


async def test_pages_show_the_snapshot_at_a_position() -> None:
    batch = await moved()
    taint = next(at for at, record in enumerate(batch, start=1) if "tainted" in record.headers["ce_type"])
    async with serving(batch) as services, client(services) as http:
        now = (await http.get(f"/bindings/{WEB}")).text
        then = (await http.get(f"/bindings/{WEB}?asOf={taint}")).text
        tainted_members = (await http.get("/clusters")).text
        members = (await http.get(f"/clusters?asOf={taint - 1}")).text

    assert "eviction-started" in now
    assert "eviction-started" not in then
    assert f"State at number {taint} of the log." in then
    assert 'data-feed=""' in then, "the past does not change"
    assert f'href="/clusters?asOf={taint}"' in then
    assert "<code>maintenance:NoExecute</code>" in tainted_members
    assert "NoExecute" not in members


async def test_clusters_rebalancers_and_timelines_have_pages() -> None:
    async with serving(await moved()) as services, client(services) as http:
        members = (await http.get("/clusters")).text
        demo = (await http.get("/rebalancers")).text
        story = (await http.get("/timeline/cluster:member1")).text

    assert "tier=gold" in members
    assert "0 of 6" in members
    assert "Deployment default/web" in demo
    assert "Successful" in demo
    assert "cluster-tainted" in story


async def test_timeline_page_shows_the_newest_hundred_events() -> None:
    changes = [observed("web", b'{"metadata":{"name":"web"}}', version) for version in range(1, 104)]
    async with serving(changes) as services, client(services) as http:
        now = (await http.get("/timeline/default/web")).text
        then = (await http.get("/timeline/default/web?asOf=101")).text

    assert re.findall(r'asOf=(\d+)" title', now) == [str(number) for number in range(103, 3, -1)]
    assert "3 older events are not shown" in now
    assert re.findall(r'asOf=(\d+)" title', then)[0] == "101"
    assert "1 older event is not shown" in then


async def test_form_shows_a_page_as_of_another_number() -> None:
    async with serving(await moved()) as services, client(services) as http:
        page = await http.get("/?cluster=member2&asOf=20")

    form = page.text[page.text.index("<form") : page.text.index("</form>")]
    assert '<form action="/">' in form
    assert '<input name="asOf" value="20"' in form
    assert '<input type="hidden" name="cluster" value="member2">' in form
    assert "form-action 'self'" in page.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/?asOf=20", "/api/v1/bindings?asOf=20"),
        ("/clusters?asOf=1970-01-01T00:00:00Z", "/api/v1/clusters?asOf=0"),
        (f"/bindings/{WEB}", f"/api/v1/bindings/{WEB}"),
        (f"/bindings/{WEB}?asOf=17", f"/api/v1/timeline/{WEB}?asOf=17"),
        (f"/explain/{WEB}", f"/api/v1/explain/{WEB}"),
        ("/timeline/cluster:member1", "/api/v1/timeline/cluster%3Amember1"),
        ("/clusters", "/api/v1/clusters"),
        ("/plans", "/api/v1/plans"),
    ],
)
async def test_page_links_to_its_data(path: str, data: str) -> None:
    async with serving(await moved()) as services, client(services) as http:
        page = await http.get(path)
        link = re.findall('<a href="([^"]*)">The same data as JSON', page.text)
        answer = await http.get(data)
    assert link == [data]
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")


async def test_times_have_a_zone() -> None:
    async with serving(await moved()) as services, client(services) as http:
        pages = [(await http.get(path)).text for path in (f"/bindings/{WEB}", "/rebalancers")]
    times = [time for page in pages for time in re.findall("<time>(.*?)</time>", page)]
    assert times
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", time) for time in times)


async def test_names_are_escaped_and_scripts_come_from_the_server_only() -> None:
    builder, key = RecordBuilder(), "default/<b>x-deployment"
    batch = builder.decide(declared(key, "<b>x", 1), decided(key, **{"<script>": 6}))
    async with serving(batch) as services, client(services) as http:
        page = await http.get("/")
        script = await http.get("/live.js")
        story = await http.get("/timeline/default/%3Cb%3Ex-deployment")

    assert "script-src 'self';" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    for text in (page.text, story.text):
        assert "<script>" not in text
        assert "<b>" not in text
        assert "&lt;script&gt;" in text
    assert script.headers["content-type"].startswith("text/javascript")


async def test_every_link_in_a_page_resolves() -> None:
    async with serving(await moved()) as services, client(services) as http:
        seen, waiting = set[str](), ["/", "/style.css", "/live.js", "/icon.svg"]
        while waiting:
            address = waiting.pop(0)
            if address not in seen and len(seen) < 60:
                seen.add(address)
                answer = await http.get(address)
                assert answer.status_code == 200, address
                waiting += map(html.unescape, re.findall('href="([^"]*)"', answer.text))

    assert f"/api/v1/bindings/{WEB}" in seen
    assert len(seen) == 60


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("/bindings/default/nothing", 404, "no record about"),
        ("/timeline/nothing", 404, "no record about"),
        ("/explain/default/nothing", 404, "no decision"),
        ("/clusters?asOf=99", 400, "asOf: the log ends"),
        ("/?continue=" + "x" * 5000, 400, "continue: Expected"),
        ("/rebalancers?continue=nonsense", 400, "continue: "),
        ("/clusters?colour=red", 400, "colour: unknown parameter"),
    ],
)
async def test_missing_object_or_invalid_query_has_an_error_page(path: str, status: int, reason: str) -> None:
    async with serving() as services, client(services) as http:
        page = await http.get(path, headers={"accept": "text/html"})
    assert page.status_code == status
    assert reason in page.text


@pytest.mark.parametrize(
    "manifest",
    [b"5", b'{"metadata":{"name":5}}', b'{"metadata":{"name":"odd"},"spec":{"clusters":5}}', b'{"a":"\xff"}'],
)
async def test_observed_binding_that_cannot_be_read_is_shown_as_such_beside_others(manifest: bytes) -> None:
    good = b'{"metadata":{"name":"good","namespace":"default"},"spec":{"resource":{"kind":"Deployment","name":"web"}}}'
    batch = [observed("good", good, 1), observed("odd", manifest, 2)]
    async with serving(batch) as services, client(services) as http:
        page = await http.get("/")
    assert page.status_code == 200
    assert 'href="/timeline/default/good"' in page.text
    assert 'href="/timeline/default/odd"' in page.text
    assert "Unreadable" in page.text
    assert "The same data as JSON" not in page.text, "the query API does not list observed bindings"


def observed(name: str, manifest: bytes, version: int) -> records.Record:
    """The observation of a ResourceBinding."""
    data = observations.ObjectObserved(
        kind="ResourceBinding",
        namespace="default",
        name=name,
        version=version,
        manifest=msgspec.Raw(manifest),
    )
    head = records.Envelope(id=name, source="/observed", type="", time="2026-11-25T12:00:00.000Z")
    return codec.encode(data, head, partition=0, key=data.record_key)


async def test_unreadable_observed_binding_does_not_keep_others_from_being_copied() -> None:
    log = MemoryLog()
    good = b"""{"apiVersion":"work.karmada.io/v1alpha2","kind":"ResourceBinding",
        "metadata":{"name":"good","namespace":"default"},"spec":{"clusters":[{"name":"member1","replicas":2}]}}"""
    await log.append(
        [observed("good", good, 1), observed("odd", good.replace(b"good", b"odd").replace(b"2}", b'"2"}'), 2)]
    )
    state = await states.of_log(log)
    assert state is not None
    assert list(state.placements) == [("default", "good")]
    assert state.notes == ["placements not copied, since their bindings cannot be read: default/odd"]
