"""Verdicts on inputs in their partition: taken, late, repeated, misplaced or refused."""

from functools import partial

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import (
    catalogue,
    codec,
    decisions,
    health,
    keys,
    limits,
    links,
    objects,
    partitioning,
    policies,
    records,
    shapes,
    specs,
    topics,
)
from events.envelope import Envelope
from events.validation import manifests, verdicts
from tests.builders import inputs, log_records
from tests.builders.inputs import policy
from tests.builders.log_records import Partition, envelope
from tests.builders.manifests import config_map, deployment, manifest, raw

KEY = "default/foo-deployment"
FOO_MANIFEST = deployment("foo", 3, "default")
NAMESPACE = policies.NamespaceApplied(manifest=raw(manifest("v1", "Namespace", "shop")))
applied = partial(inputs.deployment, "foo")
FOO = shapes.WorkloadRef(api_version="apps/v1", kind="Deployment", name="foo", namespace="default")


def head_of(partition: Partition, key: str = KEY) -> verdicts.Head:
    return partition.fold.state.heads[key]


def test_first_write_creates() -> None:
    partition = Partition.of(applied())
    taken = partition.taken(applied(), envelope(time="2024-05-25T09:49:51.120Z"))

    assert taken.at_ms == 1_716_630_591_120
    assert taken.manifest is not None
    assert taken.manifest.reference == FOO
    head = taken.head
    assert head is not None
    assert head == head_of(partition)
    assert (head.version, head.generation, head.created_ms) == (1, 1, 1_716_630_591_120)
    assert (head.api_version, head.kind, head.name) == ("apps/v1", "Deployment", "foo")


def test_generation_ignores_metadata_and_status() -> None:
    partition = Partition.of(applied())
    first = partition.taken(inputs.applied(FOO_MANIFEST), envelope(time="2024-05-25T09:49:51Z")).head
    assert first is not None
    generations: list[int] = []
    for extra in ({}, {"status": {"replicas": 3}}, {"other": 1}):
        changed = inputs.applied(FOO_MANIFEST | extra)
        taken = partition.taken(changed, envelope(time="2025-01-01T00:00:00Z"))
        assert taken.head is not None
        assert (taken.head.uid, taken.head.created_ms) == (first.uid, first.created_ms)
        generations.append(taken.head.generation)
    assert generations == [1, 1, 2]
    assert head_of(partition).version == 4


def test_write_with_the_current_version_is_taken() -> None:
    partition = Partition.of(applied())
    partition.taken(applied(expects=0))
    partition.taken(applied(4, expects=1))
    partition.taken(applied(5))  # without an expected version, the last write wins
    assert (
        partition.refused(applied(expects=0)) == "late: expects: written for version 0, but version 3 stands"
    )
    assert (
        partition.refused(applied(expects=2)) == "late: expects: written for version 2, but version 3 stands"
    )
    assert head_of(partition).generation == 3


def test_expected_version_of_a_missing_object_is_late() -> None:
    partition = Partition.of(applied())
    assert partition.refused(applied(expects=7)) == "late: expects: written for version 7, but there is none"


def test_deleted_object_is_removed_and_can_be_created_again() -> None:
    partition = Partition.of(applied())
    old = partition.taken(applied()).head
    gone = partition.taken(specs.TemplateDeleted(template=FOO, expects=1))
    assert gone.head == old
    assert not partition.fold.state.heads
    said = partition.refused(specs.TemplateDeleted(template=FOO))
    assert said == "refused: name: default/foo-deployment does not exist"
    new = partition.taken(applied(expects=0)).head
    assert old is not None
    assert new is not None
    assert new.uid != old.uid
    assert (new.generation, new.version) == (1, 4)


POLICY_REF = shapes.PolicyRef(kind="PropagationPolicy", name="p", namespace="default")


@pytest.mark.parametrize(
    ("written", "deleted"),
    [
        (applied, lambda: specs.TemplateDeleted(template=FOO)),
        (lambda: policy("p"), lambda: policies.PolicyDeleted(policy=POLICY_REF)),
        (
            lambda: NAMESPACE,
            lambda: policies.NamespaceDeleted(name="shop"),
        ),
    ],
    ids=["template", "policy", "namespace"],
)
def test_each_kind_of_object_can_be_deleted(written: log_records.Build, deleted: log_records.Build) -> None:
    partition = Partition.of(written())
    partition.taken(written())
    partition.taken(deleted())
    assert not partition.fold.state.heads


@pytest.mark.parametrize(
    "other",
    [
        shapes.WorkloadRef(api_version="example.io/v1", kind="Deployment", name="foo", namespace="default"),
        shapes.WorkloadRef(api_version="apps/v1", kind="deployment", name="foo", namespace="default"),
        shapes.WorkloadRef(api_version="apps/v1", kind="Deployment", name="default/foo"),
    ],
    ids=["version", "kind", "name"],
)
def test_deletion_must_name_the_existing_object(other: shapes.WorkloadRef) -> None:
    deletion = specs.TemplateDeleted(template=other)
    assert log_records.key_of(deletion) == KEY
    partition = Partition.of(applied())
    partition.taken(applied())
    assert partition.refused(deletion) == "refused: name: default/foo-deployment does not exist"
    assert KEY in partition.fold.state.heads


def test_policy_is_deleted_by_its_own_kind() -> None:
    partition = Partition("policies")
    partition.taken(policy("p"))
    partition.taken(NAMESPACE)
    for ref in (
        shapes.PolicyRef(kind="propagationpolicy", name="p", namespace="default"),
        shapes.PolicyRef(kind="PropagationPolicy", name="default/p"),
        shapes.PolicyRef(kind="Namespace", name="shop"),
    ):
        said = partition.refused(policies.PolicyDeleted(policy=ref))
        assert said.startswith("refused: name: "), said
    assert len(partition.fold.state.heads) == 2


def test_two_templates_with_one_binding_name_are_refused() -> None:
    partition = Partition.of(applied())
    partition.taken(applied())
    other = inputs.applied(manifest("example.io/v1", "Deployment", "foo", "default"))
    said = "refused: apiVersion: apps/v1 Deployment foo has this binding name; delete that one first"
    assert partition.refused(other) == said
    assert head_of(partition).version == 1

    role = "rbac.authorization.k8s.io/v1"
    one, two = (
        inputs.applied(manifest(role, "ClusterRole", name)) for name in ("system:view", "system.view")
    )
    partition = Partition.of(one)
    partition.taken(one)
    said = (
        f"refused: metadata.name: {role} ClusterRole system:view has this binding name; delete that one first"
    )
    assert partition.refused(two) == said


def test_retry_of_a_producer_is_repeated() -> None:
    partition = Partition.of(applied())
    head = envelope("1", "/a")
    partition.taken(applied(3), head)
    partition.taken(applied(4))
    assert partition.refused(applied(3), head) == "repeated: id: this source has said this id already"
    partition.taken(applied(5), envelope("1", "/b"))
    assert head_of(partition).generation == 3


def test_ids_of_refused_inputs_are_remembered() -> None:
    partition = Partition.of(applied())
    head = envelope("1", "/a")
    assert partition.refused(applied(expects=7), head).startswith("late")
    assert partition.refused(applied(), head).startswith("repeated")


GONE = health.WorkloadGone(cluster="member1", key=KEY, term=1, step=1)


def taken_by_offset(ids: list[tuple[int, str]]) -> list[bool]:
    """Return whether each event was taken; ids by offset."""
    partition = Partition.of(GONE)
    found: list[bool] = []
    for offset, event_id in ids:
        partition.next_offset = offset
        found.append(isinstance(partition.submit(GONE, envelope(event_id)), verdicts.Taken))
    return found


def test_id_is_known_within_the_window_and_forgotten_behind_it() -> None:
    window = limits.RECENT_IDS
    assert taken_by_offset([(0, "a"), (window - 1, "a")]) == [True, False]
    assert taken_by_offset([(0, "a"), (window, "a")]) == [True, True]


def test_repetition_renews_the_window() -> None:
    # Otherwise the verdict would depend on records before the window, which a late reader does not see.
    window = limits.RECENT_IDS
    assert taken_by_offset([(0, "a"), (10, "a"), (window + 5, "a"), (window + 6, "b")]) == [
        True,
        False,
        False,
        True,
    ]


@given(st.lists(st.tuples(st.integers(1, 40_000), st.sampled_from("abc")), max_size=12), st.integers(0, 11))
def test_verdict_on_repetition_depends_on_the_window_only(said: list[tuple[int, str]], start: int) -> None:
    offset, ids = 0, list[tuple[int, str]]()
    for gap, event_id in said:
        offset += gap
        ids.append((offset, event_id))
    whole = taken_by_offset(ids)
    for index, (at, _) in enumerate(ids):
        if index < start:
            continue
        window = [(o, e) for o, e in ids[: index + 1] if o > at - limits.RECENT_IDS]
        assert taken_by_offset(window)[-1] == whole[index]


def test_forgotten_ids_take_no_memory() -> None:
    partition = Partition.of(GONE)
    for offset in range(0, 10 * limits.RECENT_IDS, limits.RECENT_IDS // 4):
        partition.next_offset = offset
        partition.submit(GONE)
    assert len(partition.fold.state.recent) == 4


def test_key_must_belong_to_the_object() -> None:
    partition = Partition.of(applied())
    wrong = records.record("specs", partition.fold.state.partition, "foo", *_content(applied()))
    assert log_records.words(partition.take(wrong)) == "misplaced: key: must be 'default/foo-deployment'"


def test_record_must_be_in_the_partition_of_its_key() -> None:
    home = keys.shard_of(KEY)
    other = Partition("specs", (home + 1) % topics.SHARDS)
    record = codec.encode(applied(), envelope(), partition=other.fold.state.partition, key=KEY)
    said = log_records.words(other.take(record))
    assert said == f"misplaced: key: belongs in partition {home}"
    assert not other.fold.state.heads


@pytest.mark.parametrize(
    "data",
    [
        policy("p"),
        decisions.BindingWithdrawn(key=KEY, reason="x"),
        links.RescheduleAnswered(rebalancer="r", uid="u", generation=1, workload=FOO, result="Successful"),
    ],
    ids=["policy", "decision", "link"],
)
def test_event_must_be_in_its_own_topic(data: shapes.Event) -> None:
    partition = Partition.of(applied())
    record = records.record("specs", partition.fold.state.partition, KEY, *_content(data))
    assert log_records.words(partition.take(record)).startswith("misplaced: type: belongs to the topic ")


def test_unknown_type_is_skipped() -> None:
    partition = Partition.of(applied())
    head = {"ce_specversion": "1.0", "ce_id": "1", "ce_source": "/a", "ce_type": "com.example.thing.v1"}
    record = log_records.record_of_bytes("specs", head, b"not JSON")
    assert isinstance(partition.take(record), verdicts.Skipped)


Applied = type[specs.TemplateApplied | specs.RebalancerApplied | policies.PolicyApplied]
A_POLICY = "kind: a PropagationPolicy of policy.karmada.io/v1alpha1 is a policy"
A_TEMPLATE = "kind: a Deployment of apps/v1 is a template"


@pytest.mark.parametrize(
    ("applied_as", "raw", "said"),
    [
        (specs.TemplateApplied, msgspec.Raw(b"[]"), "manifest: Expected `object`, got `array`"),
        (specs.TemplateApplied, msgspec.Raw(b"{}"), "apiVersion: required"),
        (specs.TemplateApplied, raw(manifest("apps/v1", "", "a")), "kind: required"),
        (
            specs.TemplateApplied,
            raw(manifest("v1", "Secret", "")),
            "metadata.name: required",
        ),
        (
            specs.TemplateApplied,
            raw(manifest("v1", "Secret", "a/b")),
            "metadata.name: 'a/b' is no object",
        ),
        (
            specs.TemplateApplied,
            raw(deployment("foo", -1, "default")),
            "spec.replicas: expected a whole number >= 0",
        ),
        (specs.TemplateApplied, policy("p").manifest, A_POLICY),
        (specs.RebalancerApplied, raw(FOO_MANIFEST), A_TEMPLATE),
        (policies.PolicyApplied, raw(FOO_MANIFEST), A_TEMPLATE),
        (policies.NamespaceApplied, policy("p").manifest, A_POLICY),
        (policies.InterpreterApplied, raw(FOO_MANIFEST), A_TEMPLATE),
    ],
)
def test_malformed_object_is_refused(applied_as: Applied, raw: msgspec.Raw, said: str) -> None:
    data = applied_as(manifest=raw)
    topic = catalogue.BY_STRUCT[applied_as].topic
    partition = Partition(topic, partitioning.partition_of(KEY, topics.TOPICS[topic].partitions))
    record = records.record(topic, partition.fold.state.partition, KEY, *_content(data))
    assert log_records.words(partition.take(record)).startswith(f"refused: {said}")
    assert not partition.fold.state.heads


def test_cluster_policy_has_no_namespace() -> None:
    Partition("policies").taken(policy("p", namespace=""))


def test_object_over_the_size_limit_is_refused() -> None:
    data = inputs.applied(config_map("big", "default", a="x" * limits.OBJECT_BYTES_MAX))
    partition = Partition.of(inputs.applied(config_map("big", "default")))
    record = records.record("specs", partition.fold.state.partition, "default/big-configmap", *_content(data))
    assert log_records.words(partition.take(record)).startswith("refused: manifest: 10486")


def test_nesting_over_the_depth_limit_is_refused() -> None:
    def nested(levels: int) -> specs.TemplateApplied:
        value: object = 1
        for _ in range(levels):
            value = [value]
        return inputs.applied(manifest("v1", "ConfigMap", "deep", "default", data=value))

    partition = Partition.of(nested(1))
    partition.taken(nested(limits.DEPTH_MAX))
    said = partition.refused(nested(limits.DEPTH_MAX + 1))
    assert said == f"refused: data: nested deeper than {limits.RECORD_DEPTH_MAX} levels"


def test_invalid_time_is_refused_and_an_absent_one_is_zero() -> None:
    partition = Partition.of(applied())
    assert partition.refused(applied(), envelope(time="yesterday")).startswith("refused: time: 'yesterday'")
    assert partition.taken(applied(), envelope(time="")).at_ms == 0


def test_refusal_keeps_the_envelope() -> None:
    partition = Partition.of(applied())
    verdict = partition.submit(applied(expects=7), envelope("9", "/a"))
    assert isinstance(verdict, verdicts.Refused)
    assert verdict.envelope is not None
    assert (verdict.envelope.source, verdict.envelope.id) == ("/a", "9")


def test_engine_event_has_no_input_key() -> None:
    with pytest.raises(TypeError, match="BindingWithdrawn is no input"):
        verdicts.key_of(decisions.BindingWithdrawn(key=KEY, reason="x"))


def _refuse(manifest: objects.Manifest, raw: msgspec.Raw) -> None:
    if b"forbidden" in bytes(raw):
        raise objects.Refusal("spec", f"{manifest.kind} says a forbidden word")


def test_fold_applies_the_given_check() -> None:
    record = log_records.record(inputs.deployment("forbidden"))
    partition = Partition("specs", record.partition, _refuse)
    assert log_records.words(partition.take(record)) == "refused: spec: Deployment says a forbidden word"


WRITES = st.lists(
    st.tuples(
        st.sampled_from(["apply", "delete"]),
        st.integers(0, 3),
        st.none() | st.integers(0, 6),
        st.sampled_from("abcdefgh"),
    ),
    max_size=12,
)


@given(WRITES)
def test_fold_is_a_function_of_the_records(writes: list[tuple[str, int, int | None, str]]) -> None:
    partition = Partition.of(applied())
    first = [
        partition.submit(
            applied(replicas, expects=expects)
            if what == "apply"
            else specs.TemplateDeleted(template=FOO, expects=expects),
            envelope(event_id),
        )
        for what, replicas, expects, event_id in writes
    ]
    again = Partition.of(applied())
    assert [again.fold.take(record) for record in partition.records] == first
    assert again.fold.state == partition.fold.state
    # The same holds for a fold that continues from a serialised state.
    middle = len(partition.records) // 2
    half = Partition.of(applied())
    for record in partition.records[:middle]:
        half.fold.take(record)
    kept = msgspec.msgpack.decode(msgspec.msgpack.encode(half.fold.state), type=verdicts.PartitionState)
    late = verdicts.PartitionFold(kept, manifests.check)
    assert [late.take(record) for record in partition.records[middle:]] == first[middle:]


@given(WRITES)
def test_refused_input_changes_no_object(writes: list[tuple[str, int, int | None, str]]) -> None:
    partition = Partition.of(applied())
    for what, replicas, expects, event_id in writes:
        before = dict(partition.fold.state.heads)
        data = (
            applied(replicas, expects=expects)
            if what == "apply"
            else specs.TemplateDeleted(template=FOO, expects=expects)
        )
        verdict = partition.submit(data, envelope(event_id))
        if isinstance(verdict, verdicts.Refused):
            assert partition.fold.state.heads == before
        else:
            assert isinstance(verdict, verdicts.Taken)
            assert (KEY in partition.fold.state.heads) == (what == "apply")
            version = before[KEY].version if KEY in before else 0
            assert expects in {None, version}


def _content(data: shapes.Event) -> tuple[dict[str, str], bytes]:
    head = Envelope(id="1", source="/a", type=catalogue.BY_STRUCT[type(data)].type)
    record = codec.encode(data, head, partition=0, key="")
    return dict(record.headers), record.value
