"""Recorded responses of a real API server equal those of Reballast, except in the listed steps."""

from typing import Final

import pytest
from msgspec import structs

from tests.api.servers import kube_client, serving
from tests.kube.oracle.book import STORIES
from tests.kube.oracle.playing import Answer, play
from tests.kube.oracle.recording import VECTORS, recorded

LISTED: Final = VECTORS.with_name("oracle-differs.txt")
_SLOW: Final = ("watching",)
"""Its watches last for a second each."""

RECORDED: Final = recorded()
KNOWN: Final = {tuple(line.split()) for line in LISTED.read_text().splitlines()}


async def answers_of(story: str) -> list[Answer]:
    """Return our answers to a story, over its own log."""
    async with serving() as services, kube_client(services) as client:
        return await play(client, story, STORIES[story])


def differing(story: str, answers: list[Answer]) -> dict[int, str]:
    """Return the differences by step; requests contain the tokens and versions of their server."""
    recorded = RECORDED[story]
    assert len(answers) == len(recorded)
    return {
        expected.step: f"{expected.request}\nrecorded: {expected}\nanswered: {actual}"
        for expected, actual in zip(recorded, answers, strict=True)
        if expected != structs.replace(actual, request=expected.request)
    }


@pytest.mark.parametrize(
    "story", [pytest.param(name, marks=pytest.mark.slow if name in _SLOW else ()) for name in STORIES]
)
async def test_answers_equal_those_of_a_real_server(story: str) -> None:
    differences = differing(story, await answers_of(story))
    listed = {int(step) for name, step in KNOWN if name == story}
    unlisted = [text for step, text in differences.items() if step not in listed]
    assert not unlisted, "\n".join(unlisted)
    assert listed <= differences.keys(), f"as a real server now: remove these steps from {LISTED}"
