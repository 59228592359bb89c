"""Properties of the fold: its check, the same result from the same records, no effect of refusals."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from events import kube_objects, specs
from events.validation import manifests, verdicts
from tests.builders import inputs, log_records
from tests.builders.log_records import Partition, envelope
from tests.events.verdicts.deployment import FOO, KEY, applied


def _refuse(manifest: kube_objects.Manifest, raw: msgspec.Raw) -> None:
    if b"forbidden" in bytes(raw):
        raise kube_objects.Refusal("spec", f"{manifest.kind} says a forbidden word")


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
            if action == "apply"
            else specs.TemplateDeleted(template=FOO, expects=expects),
            envelope(event_id),
        )
        for action, replicas, expects, event_id in writes
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
    for action, replicas, expects, event_id in writes:
        before = dict(partition.fold.state.heads)
        data = (
            applied(replicas, expects=expects)
            if action == "apply"
            else specs.TemplateDeleted(template=FOO, expects=expects)
        )
        verdict = partition.submit(data, envelope(event_id))
        if isinstance(verdict, verdicts.Refused):
            assert partition.fold.state.heads == before
        else:
            assert isinstance(verdict, verdicts.Taken)
            assert (KEY in partition.fold.state.heads) == (action == "apply")
            version = before[KEY].version if KEY in before else 0
            assert expects in {None, version}
