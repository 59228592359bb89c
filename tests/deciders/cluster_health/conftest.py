"""The clusters of all stories about the health of clusters."""

import pytest

from tests.builders.inputs import capacity, health_reported, joined
from tests.deciders.cluster_health.fleet import MEMBERS
from tests.deciders.story import Story


@pytest.fixture(autouse=True)
async def six_members(story: Story) -> None:
    await story.submit(*(joined(name) for name in MEMBERS), *(capacity(name) for name in MEMBERS))
    await story.submit(*(health_reported(name) for name in MEMBERS))
