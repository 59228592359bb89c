"""The chain of steps: valid successors and their outputs."""

from collections.abc import Sequence

from events import codec, decisions, ids, records
from events.chain import Chain
from tests.projections.logs import RecordBuilder

SHARD = 3
WITHDRAWN = decisions.BindingWithdrawn(key="default/foo-deployment", reason="TemplateDeleted")


def fold(chain: Chain, batch: Sequence[records.Record]) -> list[bool]:
    """Return the chain's verdict on each record."""
    verdicts: list[bool] = []
    for offset, record in enumerate(batch):
        decoded = codec.decode(record)
        assert isinstance(decoded, codec.Decoded)
        verdicts.append(chain.take(records.stored(record, offset, offset + 1), decoded.data))
    return verdicts


def test_successors_and_their_outputs_count() -> None:
    builder, chain = RecordBuilder(), Chain(SHARD)
    batch = [
        *builder.step(SHARD, [WITHDRAWN]),
        *builder.step(SHARD, []),
        *builder.step(SHARD, [WITHDRAWN], term=2),
    ]

    assert fold(chain, batch) == [True] * 5
    assert (chain.number, chain.term, chain.ignored) == (3, 2, 0)


def test_repeated_step_is_ignored_with_its_outputs() -> None:
    builder, chain = RecordBuilder(), Chain(SHARD)
    batch = builder.step(SHARD, [WITHDRAWN, WITHDRAWN])

    assert fold(chain, [*batch, *batch]) == [True] * 3 + [False] * 3
    assert chain.ignored == 3


def test_steps_of_a_stale_owner_are_ignored() -> None:
    builder, rival, chain = RecordBuilder(), RecordBuilder(), Chain(SHARD)
    shared = builder.step(SHARD, [WITHDRAWN], term=1)
    rival.step(SHARD, [WITHDRAWN], term=1)
    takeover = builder.step(SHARD, [], term=2)
    stale = rival.step(SHARD, [WITHDRAWN], term=1)

    assert fold(chain, [*shared, *takeover, *stale]) == [True, True, True, False, False]


def test_lower_term_gap_and_other_predecessor_are_no_successors() -> None:
    builder, chain = RecordBuilder(), Chain(SHARD)
    fold(chain, builder.step(SHARD, [], term=2))

    lower = builder.step(SHARD, [], term=1)
    after_a_gap = builder.step(SHARD, [], term=2)
    other_past = RecordBuilder()
    other_past.step(SHARD, [WITHDRAWN], term=2)

    assert fold(chain, [*lower, *after_a_gap, *other_past.step(SHARD, [], term=2)]) == [False] * 3
    assert chain.number == 1


def test_outputs_of_bare_steps_in_other_topics_are_matched_by_id() -> None:
    builder, chain = RecordBuilder(is_bare=True), Chain(SHARD)
    fold(chain, [*builder.step(SHARD, [WITHDRAWN], term=1), *builder.step(SHARD, [WITHDRAWN], term=5)])

    assert chain.is_undeclared_output(ids.output_id(SHARD, 1, 1, 4))
    assert chain.is_undeclared_output(ids.output_id(SHARD, 5, 2, 1))
    assert not chain.is_undeclared_output(ids.output_id(SHARD, 1, 2, 1)), "step 2 was taken in term 5"
    assert not chain.is_undeclared_output(ids.output_id(SHARD, 5, 3, 1)), "there is no step 3 yet"
    assert not chain.is_undeclared_output("0b1e7d6e-1b7c-4b0e-9a51-5b0f3a0c7f11")
