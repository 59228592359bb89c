"""Invariant 10: no hostile record stops the views or makes a query fail."""

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from events import (
    catalogue,
    codec,
    keys,
    links,
    observations,
    policies,
    quota_decisions,
    records,
    shapes,
    topics,
)
from events.records import Envelope
from projections import client_events, object_tables, query
from projections.store import Store
from tests.builders.documents import document_of
from tests.builders.inputs import configuration, deployment, joined, quota
from tests.builders.manifests import POLICIES, manifest
from tests.members import examples
from tests.projections.logs import RecordBuilder, fold_all
from tests.projections.stories import Story

STORY = [*(story := Story(11)).opening(), *(record for _ in range(30) for record in story.more())]
SOUND = [record for record in STORY if record.headers.get("ce_type")]
HUGE = 2**63
QUOTA = object_tables.Kind(POLICIES, "FederatedResourceQuota")

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-HUGE * 4, HUGE * 4) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
HEADERS = st.fixed_dictionaries(
    {
        "ce_specversion": st.just("1.0"),
        "ce_id": st.sampled_from(
            ["", "0-1-1-0", "0-1-1-1", "1-1-1", "x", "0-1-1-" + "9" * 5000, "\u0663-1-1-0"]
        ),
        "ce_source": st.just("/hostile"),
        "ce_type": st.sampled_from([*catalogue.BY_TYPE, "io.reballast.unheard-of.v1"]),
        "ce_time": st.sampled_from(["", "yesterday", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00"]),
        "content-type": st.sampled_from(["application/json", "application/cloudevents+json", ""]),
    }
)
KEYS = st.sampled_from(["", "k", "default/foo-deployment", "workloadrebalancer:x", "\0", "k" * 3000])
SHOWN = [
    object_tables.Kind(api_version, kind)
    for api_version, kind in (
        ("apps/v1", "Deployment"),
        ("cluster.karmada.io/v1alpha1", "Cluster"),
        ("work.karmada.io/v1alpha2", "ResourceBinding"),
        ("work.karmada.io/v1alpha1", "Work"),
    )
]


@st.composite
def broken(draw: st.DrawFn) -> records.Record:
    """A record of the story with a field replaced, truncated, or at another position."""
    original = draw(st.sampled_from(SOUND))
    fields = msgspec.json.decode(original.value, type=dict[str, object])
    fields[draw(st.sampled_from(sorted(fields)))] = draw(JSON)
    value = msgspec.json.encode(fields)
    value = value[: draw(st.integers(0, len(value)))] if draw(st.booleans()) else value
    topic = draw(st.sampled_from([original.topic, *topics.TOPICS]))
    partition = draw(st.integers(0, topics.TOPICS[topic].partitions - 1) | st.just(original.partition))
    return records.record(topic, partition, original.key, original.headers, value)


@st.composite
def invented(draw: st.DrawFn) -> records.Record:
    """A record with random content."""
    topic = draw(st.sampled_from(sorted(topics.TOPICS)))
    partition = draw(st.integers(0, topics.TOPICS[topic].partitions - 1))
    value = draw(st.binary(max_size=20) | JSON.map(msgspec.json.encode))
    return records.record(topic, partition, draw(KEYS), draw(HEADERS), value)


@pytest.mark.slow
@settings(max_examples=80, suppress_health_check=list(HealthCheck))  # type: ignore[arg-type]
@given(st.lists(broken() | invented(), max_size=25), st.integers(0, len(STORY)))
def test_valid_records_are_folded_after_hostile_ones(hostile: list[records.Record], count: int) -> None:
    builder = RecordBuilder()
    good = builder.input(deployment("good", 1), event_id="good", source="/good")
    key = keys.binding_key("Deployment", "default", "good")
    store = Store()
    fold_all(store, [*STORY[:count], *hostile, good])

    with store.reading() as rows:
        assert query.get_object(rows, key) is not None
        for listing in (
            query.list_bindings,
            query.list_objects,
            query.list_clusters,
            query.list_works,
            query.list_rejections,
        ):
            assert msgspec.json.encode(listing(rows, limit=1_000), enc_hook=document_of)
        assert query.shard_steps(rows) is not None
        for kind in SHOWN:
            for brief in (False, True):
                page = object_tables.page(rows, object_tables.Selection(kind=kind, brief=brief))
                assert msgspec.json.encode([item.document for item in page.items])
    store.close()


@pytest.mark.parametrize(
    "inside",
    [
        b'{"deep": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b'{"text": "\xff"}',
        b'{"text": "\\ud800"}',
        b'{"huge": 1e999}',
        b'{"huge": ' + b"9" * 6_000 + b"}",
        b'{"labels": {"a": 1}}',
    ],
)
def test_object_with_odd_content_is_refused_or_shown(inside: bytes) -> None:
    body = b'{"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "odd"}, "data": %s}}'
    good = RecordBuilder().input(deployment("odd", 1))
    kind = next(entry.type for entry in catalogue.EVENT_TYPES if entry.struct.__name__ == "TemplateApplied")
    headers = {**good.headers, "ce_type": kind}
    key = keys.binding_key("ConfigMap", "", "odd")
    store = Store()
    fold_all(store, [records.record("specs", keys.shard_of(key), key, headers, body % inside)])

    with store.reading() as rows:
        shown = query.get_object(rows, key)
        refused = query.counts(rows).get("inputs.refused", 0)
    assert (shown is None) == (refused == 1)
    assert msgspec.json.encode(shown, enc_hook=document_of)
    store.close()


@pytest.mark.parametrize(
    "event", [b"[]", b"5", b'{"a": 1e999}', b'{"involvedObject": {"name": "\xff"}}', b'{"involvedObject": 5}']
)
def test_kubernetes_event_with_odd_content_is_skipped_or_shown(event: bytes) -> None:
    written = observations.KubernetesEventWritten(
        name="odd", namespace="default", manifest=msgspec.Raw(event)
    )
    observed = observations.ObjectObserved(
        kind="Event", namespace="default", name="odd", version=1, manifest=msgspec.Raw(event)
    )
    store = Store()
    fold_all(store, [_observation(written), _observation(observed)])

    with store.reading() as rows:
        shown = client_events.listed(rows, 2)
        skipped = query.counts(rows).get("observations.skipped", 0)
    assert len(shown) + skipped == 1
    assert msgspec.json.encode([event.document.document for event in shown])
    store.close()


@pytest.mark.parametrize(("time", "is_shown"), [("", True), ("yesterday", False)])
def test_kubernetes_event_with_odd_time_is_skipped_or_shown(time: str, *, is_shown: bool) -> None:
    written = observations.KubernetesEventWritten(
        name="odd", namespace="default", manifest=msgspec.Raw(b'{"metadata": {}}')
    )
    store = Store()
    fold_all(store, [_observation(written, time)])

    with store.reading() as rows:
        shown = client_events.listed(rows, 1)
        skipped = query.counts(rows).get("observations.skipped", 0)
    assert (len(shown), skipped) == (int(is_shown), int(not is_shown))
    assert [event.document.metadata["creationTimestamp"] for event in shown] == [None] * len(shown)
    store.close()


def test_deep_observation_has_the_same_effect_at_any_depth_of_the_stack() -> None:
    deep = msgspec.Raw(b'{"a": ' + b"[" * 600 + b"]" * 600 + b"}")
    written = observations.KubernetesEventWritten(name="odd", namespace="default", manifest=deep)

    def counted(frames: int) -> dict[str, int]:
        if frames:
            return counted(frames - 1)
        store = Store()
        fold_all(store, [_observation(written)])
        with store.reading() as rows:
            return query.counts(rows)

    assert counted(0) == counted(300) == {"observations.skipped": 1}


def _observation(
    data: observations.KubernetesEventWritten | observations.ObjectObserved | observations.ObjectVanished,
    time: str = "2026-11-25T12:00:00.000Z",
) -> records.Record:
    head = Envelope(id="1", source="/hostile", type="", time=time)
    return codec.encode(data, head, partition=0, key=data.record_key)


def test_huge_keys_in_events_are_not_stored() -> None:
    huge = "x" * 100_000
    manifest = b'{"involvedObject": {"kind": "Deployment", "name": "%s"}}' % huge.encode()
    rescheduled = links.RescheduleAnswered(
        rebalancer="again",
        uid="u",
        generation=1,
        workload=shapes.WorkloadRef(api_version="apps/v1", kind="Deployment", name=huge),
        result="Successful",
    )
    observed = (
        observations.ObjectVanished(kind="Deployment", namespace="default", name=huge),
        observations.ObjectObserved(kind="Event", name="e", version=1, manifest=msgspec.Raw(manifest)),
        observations.KubernetesEventWritten(name=huge, namespace="default", manifest=msgspec.Raw(b"{}")),
    )
    whole = [_observation(observation) for observation in observed]
    short = [records.record(record.topic, 0, "k", record.headers, record.value) for record in whole]
    store = Store()
    fold_all(store, [*short, RecordBuilder().input(rescheduled)])

    with store.reading() as rows:
        stored_keys = [
            key for (key,) in rows.select("SELECT key FROM keys UNION SELECT key FROM client_events")
        ]
    assert stored_keys == ["event:e", "workloadrebalancer:again"]
    store.close()


@pytest.mark.parametrize("inside", [b'{"huge": 1e999}', b'{"text": "\xff"}', b'{"text": "\\ud800"}'])
def test_quota_with_odd_status_shows_what_is_used_of_it(inside: bytes) -> None:
    builder = RecordBuilder()
    ref = shapes.WorkloadRef(api_version=POLICIES, kind=QUOTA.kind, name="few", namespace="default")
    status = policies.ConfigurationStatusWritten(object=ref, status={"odd": msgspec.Raw(inside)})
    decided = quota_decisions.QuotaDecided(namespace="default", used={"few": {"cpu": "3"}})
    store = Store()
    fold_all(store, [builder.input(quota("few")), builder.input(status), *builder.step(0, [decided])])

    with store.reading() as rows:
        shown = object_tables.get(rows, QUOTA, "default", "few")
    assert shown is not None
    assert shown.at("status", "overallUsed") == {"cpu": "3"}
    store.close()


def test_work_in_structured_mode_with_another_id_than_its_header_is_folded() -> None:
    first, like = RecordBuilder(is_bare=True).step(0, [examples.applied("web", 1)])
    envelope = {
        "specversion": "1.0",
        "id": "x",
        "source": "/hostile",
        "type": like.headers["ce_type"],
        "data": msgspec.Raw(like.value),
    }
    headers = {"ce_id": like.headers["ce_id"], "content-type": records.STRUCTURED}
    odd = records.record(like.topic, like.partition, like.key, headers, msgspec.json.encode(envelope))
    store = Store()
    fold_all(store, [first, odd])

    with store.reading() as rows:
        assert [work.cluster for work in query.list_works(rows).items] == [examples.applied("web", 1).cluster]
    store.close()


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {"actions": None},
        {"actions": [5]},
        {"clusterAffinity": {"clusterNames": "member1"}},
        {"decisionMatches": [{"clusterConditionMatch": {"conditionType": 5}}]},
    ],
)
def test_clusters_are_shown_beside_a_remedy_with_odd_fields(spec: object) -> None:
    builder = RecordBuilder()
    remedies = [
        manifest("remedy.karmada.io/v1alpha1", "Remedy", name, spec=fields)
        for name, fields in (("odd", spec), ("good", {"actions": ["TrafficControl"]}))
    ]
    store = Store()
    fold_all(
        store,
        [builder.input(joined("member1")), *(builder.input(configuration(remedy)) for remedy in remedies)],
    )

    with store.reading() as rows:
        cluster = object_tables.get(rows, SHOWN[1], "", "member1")
    assert cluster is not None
    assert cluster.list_at("status", "remedyActions") == ["TrafficControl"]
    store.close()
