"""An observer refuses the log of another control plane, which has another name or another namespace kube-system."""

import asyncio

import msgspec
import pytest

from engine.agent.kubeconfigs import Access
from engine.agent.member_api import MemberApi
from engine.log import local, port
from engine.observer.observer import Observer
from tests import recordings
from tests.observer.observing import FIRST, level, observing, recorded
from tests.observer.playback import Playback, playing


def of_another_control_plane() -> Playback:
    """The same objects, but for the namespace kube-system, at later versions."""
    changes = [*recorded(FIRST).changes]
    at = next(index for index, change in enumerate(changes) if change.head.metadata.name == "kube-system")
    value = msgspec.json.decode(changes[at].manifest)
    value["metadata"]["uid"] = "another"
    changes[at] = recordings.change(changes[at].type, value)
    return Playback(changes)


async def refusal(access: Access, log: port.NumberedLog, source: str = "/observed/test") -> str:
    api = MemberApi(access)
    try:
        with pytest.raises((port.LogMixedError, ExceptionGroup)) as refused:
            async with asyncio.timeout(20):
                await Observer(api, log, source, lambda: 1_000).run()
    finally:
        await api.aclose()
    error = refused.value
    return str(error.exceptions[0] if isinstance(error, ExceptionGroup) else error)


async def test_log_of_another_control_plane_is_refused_before_a_change_is_recorded() -> None:
    before, other, log = recorded(FIRST), of_another_control_plane(), local.MemoryLog()
    before.shown = FIRST - 100
    async with playing(before) as access, observing(access, log):
        await level(before, log)
    end = log.last_number()
    other.shown = FIRST
    async with playing(other) as access:
        assert "its namespace kube-system has another uid" in await refusal(access, log)
    assert log.last_number() == end


async def test_log_of_a_control_plane_with_another_name_is_refused() -> None:
    playback, log = recorded(FIRST), local.MemoryLog()
    playback.shown = 100
    async with playing(playback) as access:
        async with observing(access, log):
            await level(playback, log)
        assert "the log has the observations of /observed/test" in await refusal(access, log, "/observed/b")
