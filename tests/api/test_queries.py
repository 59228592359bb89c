"""The query API by example: current state, as-of views, and refusals."""

import base64
from typing import Any

import httpx
import pytest
from msgspec import structs

from engine.http.app import create_app
from engine.http.kube.app import create_app as create_kube_app
from events import clusters, codec, decisions, keys, records, specs, times, topics
from events import rejections as rejections_events
from projections import as_of_views
from tests.api.servers import NOW_MS, TOKEN, client, serving
from tests.builders.inputs import deployment, rebalancer, ref
from tests.builders.log_records import envelope, record, structured
from tests.builders.manifests import config_map
from tests.projections.logs import START_MS, RecordBuilder
from tests.projections.stories import KEY, decided, declared, placed


async def test_list_shows_the_writes_of_its_client() -> None:
    async with serving() as services, client(services) as http:
        for replicas in range(1, 6):
            await services.log.append(
                [RecordBuilder().input(deployment("foo", replicas), event_id=f"id-{replicas}")]
            )
            listing = (await http.get("/api/v1/objects", params={"kind": "deploy"})).json()
            assert listing["items"][0]["spec"]["replicas"] == replicas


async def test_kubernetes_api_below_a_prefix_needs_the_token() -> None:
    path = "/kubernetes/api/v1/namespaces/default/configmaps"
    manifest = config_map("settings", a="b")
    async with serving() as services:
        app = create_app(services, kubernetes=create_kube_app(services, lambda: NOW_MS))
        transport = httpx.ASGITransport(app)
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://reballast") as http:
            assert (await http.post(path, json=manifest)).status_code == 401
            cookie = {"cookie": f"reballast={TOKEN}"}
            assert (await http.post(path, json=manifest, headers=cookie)).status_code == 401
            made = await http.post(path, json=manifest, headers=headers)
            assert (made.status_code, made.json()["kind"]) == (201, "ConfigMap")
            strict = f"{path}?fieldValidation=Strict"
            again = {**manifest, "metadata": {"name": "other"}, "dta": {}}
            refused = await http.post(strict, json=again, headers=headers)
            assert (refused.status_code, refused.json()["kind"]) == (400, "Status")
            query = {"kind": "cm", "namespace": "default"}
            listing = (await http.get("/api/v1/objects", params=query, headers=headers)).json()
            for command in ("apply", "delete", "scale", "patch", "label", "clusters/member1/taint"):
                answer = await http.post(f"/api/v1/{command}", json={}, headers=headers)
                assert answer.status_code in (404, 405), "what reads does not write"
    assert [config_map["data"] for config_map in listing["items"]] == [{"a": "b"}]


async def test_bindings_are_paged_and_filtered_by_cluster() -> None:
    builder, batch = RecordBuilder(), list[records.Record]()
    for at in range(5):
        key = keys.binding_key("Deployment", "default", f"app-{at}")
        batch += builder.decide(declared(key, f"app-{at}", 1), decided(key, **{f"member{at % 2}": 1}))
    async with serving(batch) as services, client(services) as http:
        first = (await http.get("/api/v1/bindings?limit=3")).json()
        second = (
            await http.get("/api/v1/bindings", params={"limit": 3, "continue": first["continue"]})
        ).json()
        on_member1 = (await http.get("/api/v1/bindings?cluster=member1")).json()

    assert [len(page["items"]) for page in (first, second, on_member1)] == [3, 2, 2]
    assert "continue" not in second


SHARD = keys.shard_of(KEY)


@pytest.mark.parametrize(
    "as_of", ["4", f"decisions/{SHARD}/2", "2024-05-25T09:49:52Z", "2024-05-25T11:49:52+02:00"]
)
async def test_as_of_view_is_unchanged_by_later_records(as_of: str) -> None:
    builder = RecordBuilder()
    batch = [
        builder.input(deployment("foo", 3)),
        *builder.decide(declared(KEY, "foo", 3), decided(KEY, member1=2, member2=1)),
    ]
    builder.at_ms += 60_000
    batch += builder.decide(decided(KEY, member2=3))
    async with serving(batch) as services, client(services) as http:
        now = (await http.get(f"/api/v1/bindings/{KEY}")).json()
        then = (await http.get(f"/api/v1/bindings/{KEY}", params={"asOf": as_of})).json()

    assert [target["name"] for target in now["spec"]["clusters"]] == ["member2"]
    assert [target["name"] for target in then["spec"]["clusters"]] == ["member1", "member2"]


async def test_missing_position_is_refused_with_the_existing_end() -> None:
    batch = placed(RecordBuilder())
    async with serving(batch) as services, client(services) as http:
        beyond = (await http.get(f"/api/v1/bindings?asOf=decisions/{SHARD}/6")).json()["error"]
        empty = (await http.get("/api/v1/bindings?asOf=health/0/0")).json()["error"]
        unknown = (await http.get("/api/v1/bindings?asOf=gossip/0/0")).json()["error"]

    end = f"decisions/{SHARD} ends with offset 5"
    assert beyond["reason"] == f"there is no record decisions/{SHARD}/6: {end}"
    assert empty["reason"] == "there is no record health/0/0: health/0 is empty"
    assert unknown["remedy"].startswith("use one of: specs, policies, clusters")


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("tier=gold", ["member1"]),
        ("tier!=gold", ["member2", "member3"]),
        ("tier in (gold, silver)", ["member1", "member2"]),
        ("tier notin (gold),!old", ["member2"]),
        ("old", ["member3"]),
        ("!tier", ["member3"]),
    ],
)
async def test_label_selectors_work_as_in_kubectl(selector: str, names: list[str]) -> None:
    builder, labels = RecordBuilder(), ({"tier": "gold"}, {"tier": "silver"}, {"old": "yes"})
    joined = [
        clusters.ClusterJoined(name=f"member{at}", labels=member_labels)
        for at, member_labels in enumerate(labels, start=1)
    ]
    async with serving([builder.input(event) for event in joined]) as services, client(services) as http:
        members = (await http.get("/api/v1/clusters", params={"labelSelector": selector})).json()["items"]

    assert [member["metadata"]["name"] for member in members] == names


async def test_instant_maps_to_the_same_position_despite_a_producer_with_a_slow_clock() -> None:
    """Steps give the time; a record with an earlier producer time does not move the position."""
    builder = RecordBuilder()
    batch = [builder.input(deployment("a", 1)), *builder.step(0, [])]
    builder.at_ms += 60_000
    batch += [builder.input(deployment("b", 1)), *builder.step(0, [])]
    builder.at_ms = START_MS - 10**9
    batch += [builder.input(deployment("c", 1))]
    async with serving(batch) as services:
        numbers = [
            await as_of_views.number_at(services.log, START_MS + seconds * 1000)
            for seconds in (0, 1, 30, 62, 90)
        ]

    assert numbers == [0, 2, 2, 5, 5]


async def test_timeline_lists_the_events_of_a_binding_with_their_causes() -> None:
    async with serving(placed(RecordBuilder())) as services, client(services) as http:
        timeline = (await http.get(f"/api/v1/timeline/{KEY}")).json()
        early = (await http.get(f"/api/v1/timeline/{KEY}?asOf=4")).json()

    assert [item["number"] for item in timeline["items"]] == [1, 3, 4, 5, 7]
    assert timeline["items"][3]["type"] == "io.reballast.schedule-decided.v1"
    assert timeline["items"][3]["cause"] == "specs/3/0"
    assert timeline["items"][3]["data"]["clusters"][0] == {"name": "member1", "replicas": 2}
    assert [item["number"] for item in early["items"]] == [1, 3, 4]


async def test_log_is_filtered_by_the_subject_of_records_in_structured_content_mode() -> None:
    head = structs.replace(envelope(), subject=KEY)
    async with serving() as services, client(services) as http:
        await services.log.append([structured(record(deployment("other"), head)), record(deployment("more"))])
        page = (await http.get("/api/v1/log", params={"key": KEY})).json()
        assert [entry["subject"] for entry in page["items"]] == [KEY]


async def test_log_with_undecodable_records_is_readable() -> None:
    hostile = records.record("specs", 0, "k", {"ce_id": "x"}, b"\xff\xfe not JSON")
    async with serving([*placed(RecordBuilder()), hostile]) as services, client(services) as http:
        steps = (await http.get("/api/v1/log?topic=decisions&limit=2")).json()
        rest = (await http.get(f"/api/v1/log?topic=decisions&after={steps['after']}")).json()
        last = (await http.get("/api/v1/log?after=7")).json()["items"][0]

    assert [len(page["items"]) for page in (steps, rest)] == [2, 4]
    assert "after" not in rest
    assert base64.b64decode(last["content"]) == hostile.value
    assert last["fault"].startswith("envelope: ")


async def test_rebalancers_and_clusters_are_found_by_name() -> None:
    builder = RecordBuilder()
    batch = [
        builder.input(rebalancer("demo", ref("foo"))),
        builder.input(clusters.ClusterJoined(name="member1", labels={"tier": "gold"})),
    ]
    async with serving(batch) as services, client(services) as http:
        demo = (await http.get("/api/v1/rebalancers/demo")).json()
        cluster = (await http.get("/api/v1/clusters/member1")).json()
        golden = (await http.get("/api/v1/clusters?labelSelector=tier=gold")).json()
        both = (await http.get("/api/v1/objects?kind=Cluster")).json()

    assert demo["spec"]["workloads"][0]["name"] == "foo"
    assert cluster["metadata"]["labels"] == {"tier": "gold"}
    assert golden == both == {"items": [cluster]}


async def test_lag_names_the_undecided_records() -> None:
    builder = RecordBuilder()
    first, second = builder.input(deployment("foo", 1)), builder.input(deployment("foo", 2))
    step = decisions.StepTaken(
        shard=first.partition, number=1, term=1, time_ms=START_MS, release="x", ends={"specs": 1}
    )
    async with serving([first, second, *_as_step(builder, step)]) as services, client(services) as http:
        lag = (await http.get("/api/v1/lag")).json()

    (shard,) = lag["shards"]
    assert (lag["lastNumber"], lag["behind"]) == (3, 0)
    assert (shard["step"], shard["time"]) == (1, times.to_text(START_MS))
    assert shard["inputs"] == [
        {"topic": "specs", "partition": first.partition, "end": 2, "taken": 1, "waiting": 1}
    ]


def _as_step(builder: RecordBuilder, step: decisions.StepTaken) -> list[records.Record]:
    (written,) = builder.step(step.shard, [])
    return [
        records.record(
            written.topic, written.partition, written.key, written.headers, codec.encode_data(step)
        )
    ]


async def test_rejected_inputs_are_listed() -> None:
    event = rejections_events.InputRejected(
        verdict="refused", field="kind", reason="required", topic=topics.SPECS, content="kind: Deployment"
    )
    head = records.Envelope(
        id="r", source="/elsewhere", type=event.event_type.type, time="2024-05-25T09:49:51Z"
    )
    refused = codec.encode(event, head, partition=0, key=topics.SPECS)
    async with serving([refused]) as services, client(services) as http:
        rejections = (await http.get("/api/v1/rejections")).json()
        counts = (await http.get("/api/v1/counts")).json()["counts"]

    assert rejections["items"][0]["verdict"] == "refused"
    assert counts["rejections.io.reballast.input-rejected"] == len(rejections["items"])


async def test_empty_log_verifies_and_has_no_explanations() -> None:
    async with serving() as services, client(services) as http:
        proof = await http.get("/api/v1/verify")
        nothing = await http.get(f"/api/v1/explain/{KEY}")

    assert proof.json()["findings"] == []
    assert nothing.status_code == 404


BAD: list[tuple[str, int, str]] = [
    ("/api/v1/bindings?limit=0", 400, "limit"),
    ("/api/v1/bindings?limit=1001", 400, "limit"),
    ("/api/v1/bindings?limit=many", 400, "limit"),
    ("/api/v1/bindings?colour=green", 400, "colour"),
    ("/api/v1/bindings?asOf=yesterday", 400, "asOf"),
    ("/api/v1/bindings?asOf=99", 400, "asOf"),
    ("/api/v1/bindings?asOf=" + "9" * 60, 400, "asOf"),
    ("/api/v1/bindings?asOf=0001-01-01T00:00:00%2B14:00", 400, "asOf"),
    ("/api/v1/bindings?asOf=specs/0/0", 400, "asOf"),
    ("/api/v1/bindings?asOf=specs/99/0", 400, "asOf"),
    ("/api/v1/bindings?asOf=gossip/0/0", 400, "asOf"),
    ("/api/v1/bindings?asOf=specs/0", 400, "asOf"),
    ("/api/v1/bindings?asOf=specs/0/-1", 400, "asOf"),
    ("/api/v1/explain/default/foo-deployment?asOf=specs/0/7", 400, "asOf"),
    ("/api/v1/bindings?labelSelector=app%20on%20(a)", 400, "labelSelector"),
    ("/api/v1/clusters?labelSelector=,", 400, "labelSelector"),
    ("/api/v1/bindings?namespace=%ff%fe", 200, ""),
    ("/api/v1/objects?continue=nonsense", 400, "continue"),
    ("/api/v1/objects?continue=[%22a%22,%22b%22,%22c%22,99999999999999999999]", 400, "continue"),
    ("/api/v1/works?continue=1.x", 400, "continue"),
    ("/api/v1/rejections?continue=" + "9" * 40, 400, "continue"),
    ("/api/v1/log?after=-1", 400, "after"),
    ("/api/v1/log?topic=gossip", 400, "topic"),
    ("/api/v1/log?after=99999999999999999999999", 400, "after"),
    ("/api/v1/bindings/default/nothing", 404, "name"),
    ("/api/v1/clusters/%00", 404, "name"),
    ("/api/v1/nothing", 404, "path"),
    ("/api/v1/live?after=soon", 400, "after"),
    ("/api/v1/bindings?name=" + "x" * 20_000, 414, "query"),
]


@pytest.mark.parametrize(("path", "status", "field"), BAD)
async def test_invalid_query_is_refused_with_field_reason_and_remedy(
    path: str, status: int, field: str
) -> None:
    async with serving() as services, client(services) as http:
        response = await http.get(path)

    assert response.status_code == status, response.text
    if field:
        error: dict[str, Any] = response.json()["error"]
        assert error["field"] == field
        assert error["reason"]
        assert error["remedy"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("DELETE", "/api/v1/bindings", 405),
        ("BREW", "/", 405),
        ("GET", "/api/v1/members/member1/heal", 405),
        ("POST", "/api/v1/bindings/default/foo", 405),
    ],
)
async def test_unsupported_method_is_refused(method: str, path: str, status: int) -> None:
    async with serving() as services, client(services) as http:
        response = await http.request(method, path)

    assert response.status_code == status
    assert response.json()["error"]["field"] == "path"


@pytest.mark.parametrize("token", ["", "wrong", "a-token-for-tests2", "\u00fc"])
@pytest.mark.parametrize("path", ["/", "/api/v1/bindings", "/openapi.json", "/metrics", "/nothing"])
async def test_request_without_the_token_is_unauthorized(token: str, path: str) -> None:
    async with serving() as services, client(services, "") as http:
        headers = [(b"authorization", f"Bearer {token}".encode())]
        response = await http.get(path, headers=headers)

    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"


async def test_health_checks_need_no_token() -> None:
    async with serving() as services, client(services, "") as http:
        assert (await http.get("/healthz")).text == "ok"
        assert (await http.get("/readyz")).text == "ok"


async def test_browser_session_is_read_only() -> None:
    async with serving(placed(RecordBuilder())) as services, client(services, "") as http:
        introduced = await http.get("/?token=a-token-for-tests")
        page = await http.get("/")
        write = await http.post("/api/v1/members/member1/heal", content="{}")

    assert introduced.status_code == 303
    assert "HttpOnly" in introduced.headers["set-cookie"]
    assert "SameSite=strict" in introduced.headers["set-cookie"]
    assert page.status_code == 200
    assert write.status_code == 401


async def test_deleted_template_is_only_in_earlier_as_of_views() -> None:
    builder = RecordBuilder()
    batch = [builder.input(deployment("foo", 1)), builder.input(specs.TemplateDeleted(template=ref("foo")))]
    async with serving(batch) as services, client(services) as http:
        now = (await http.get("/api/v1/objects")).json()
        then = (await http.get("/api/v1/objects?asOf=1")).json()

    assert [len(listing["items"]) for listing in (now, then)] == [0, 1]
