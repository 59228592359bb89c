"""What the tests of the door share."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.doors import House, open_house


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as opened:
        yield opened
