"""The clusters of all stories about taints."""

import pytest

from tests.deciders.story import Story
from tests.deciders.taints.objects import MEMBERS


@pytest.fixture(autouse=True)
async def two_members(story: Story) -> None:
    await story.join(*MEMBERS)
