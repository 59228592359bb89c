"""Equal values of bindings are one object in memory, also after a recovery and in a copy from a snapshot."""

from engine.deciders import sharing
from engine.deciders.state import Binding
from engine.reconcilers import snapshots
from events import keys
from tests.builders.inputs import deployment, joined, policy
from tests.builders.manifests import on
from tests.deciders.story import Story

NAMES = ("web", "api", "db")


def check(bindings: list[Binding]) -> None:
    first = bindings[0]
    assert first.template is not None
    assert dict(first.clusters) == {"member1": 2, "member2": 2}
    for other in bindings:
        assert other.template is not None
        assert other.declared is not None
        assert other.claim is first.claim is not None
        assert other.template.size is first.template.size
        assert other.declared.ref is other.template.ref
        assert all(own is theirs for own, theirs in zip(other.clusters, first.clusters, strict=True))
        assert list(map(id, other.works)) == list(map(id, first.works))
        assert other.condition is first.condition
        assert len(set(map(id, other.works.values()))) == 1
        assert all(work.labels is sharing.NOTHING for work in other.works.values())


async def test_bindings_of_one_policy_share_their_equal_values(story: Story) -> None:
    await story.submit(joined("member1"), joined("member2"))
    await story.submit(policy("p", on("member1", "member2")), *(deployment(name, 2) for name in NAMES))
    binding_keys = [f"default/{name}-deployment" for name in NAMES]
    check([story.binding(key) for key in binding_keys])

    await story.restart()
    check([story.binding(key) for key in binding_keys])

    folds = {shard: snapshots.copied(story.worker.folds[shard]) for shard in map(keys.shard_of, binding_keys)}
    check([folds[keys.shard_of(key)].state.bindings[key] for key in binding_keys])
