"""The workload, the placement and the evictions of stories about taints."""

from engine.deciders import taint_manager
from events import decisions
from tests.builders.inputs import key
from tests.builders.manifests import DYNAMIC, on
from tests.deciders.story import Story

WEB = key("web")
MEMBERS = ("member1", "member2")
ANYWHERE = on(*MEMBERS, scheduling=DYNAMIC)
GRACE_S = taint_manager.GRACE_PERIOD_MS // 1000


async def finished_evictions(story: Story) -> list[str]:
    """Return why evictions ended, in order."""
    return [eviction.reason for eviction in await story.recorded(decisions.EvictionFinished)]
