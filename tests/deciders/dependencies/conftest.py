"""The clusters of all stories about dependencies."""

import pytest

from tests.deciders.dependencies.objects import MEMBERS
from tests.deciders.story import Story


@pytest.fixture(autouse=True)
async def three_members(story: Story) -> None:
    await story.join(*MEMBERS)
