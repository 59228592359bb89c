"""The clusters of all stories about dependencies."""

import pytest

from tests.builders.inputs import capacity, joined
from tests.deciders.dependencies.objects import MEMBERS
from tests.deciders.story import Story


@pytest.fixture(autouse=True)
async def three_members(story: Story) -> None:
    await story.submit(*(joined(name) for name in MEMBERS))
    await story.submit(*(capacity(name) for name in MEMBERS))
