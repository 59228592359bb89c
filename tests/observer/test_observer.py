"""The observer on a recording played as a Kubernetes API: nothing lost, nothing twice, and decisions compared."""

import asyncio
import random

import msgspec
import pytest

from engine.agent.kubeconfigs import Access
from engine.agent.member_api import LIST_OBJECTS
from engine.log import local
from engine.observer.shadow import Shadow
from events import observations, topics
from events.json_values import Json
from events.kube_objects import KubeObject
from tests import recordings
from tests.observer.observing import (
    COUNT,
    FIRST,
    ROUND,
    level,
    newest_versions,
    observed,
    observing,
    recorded,
    shown,
    versions,
)
from tests.observer.playback import Playback, playing
from tests.relay import relayed

pytestmark = pytest.mark.slow

FAULTS = 0.4
PARTITION_S = 40
"""Longer than the client waits for a response."""
BOOKMARKED = 1_000


async def test_every_change_is_appended_once_while_watches_are_cut() -> None:
    playback, log = recorded(), local.MemoryLog()
    playback.shown = FIRST
    async with playing(playback) as access, observing(access, log):
        await level(playback, log)
        for end in range(FIRST + 500, COUNT + 1, 500):
            playback.shown = end
            if end % 2_000 == 0:
                playback.cut()
            await asyncio.sleep(0.05)
        await level(playback, log)
    appended = await versions(log)
    assert len(appended) == len(set(appended))
    later = {(change.object_key, change.version) for change in playback.changes[FIRST:]}
    assert later <= set(appended)
    assert playback.refused == 0


async def test_object_missing_from_a_later_list_is_deleted() -> None:
    playback, log = recorded(FIRST), local.MemoryLog()
    playback.shown = FIRST
    async with playing(playback) as access, observing(access, log) as observer:
        await level(playback, log)
        missing, *others = playback.objects("ResourceBinding")
        value = KubeObject(msgspec.json.decode(missing.manifest, type=dict[str, object]))
        later = value.with_metadata({"resourceVersion": str(10**6)})
        count = log.last_number()
        observer.changed(later, is_gone=False)
        observer.listed(
            "work.karmada.io",
            "ResourceBinding",
            [KubeObject(msgspec.json.decode(change.manifest)) for change in others],
        )
        while log.last_number() < count + 2:
            await log.wait(log.last_number())
        assert set(shown(playback)) - set(await newest_versions(log)) == {missing.object_key}


async def test_partition_loses_and_repeats_nothing() -> None:
    playback, log = recorded(), local.MemoryLog()
    playback.shown = FIRST
    async with (
        playing(playback) as access,
        relayed(access.server) as relay,
        observing(Access(server=relay.url), log),
    ):
        await level(playback, log)
        relay.passing.clear()
        for end in range(FIRST, COUNT + 1, 100):
            playback.shown = end
            await asyncio.sleep(PARTITION_S / ((COUNT - FIRST) / 100))
        assert await newest_versions(log) != shown(playback)
        relay.passing.set()
        await level(playback, log)
    appended = await versions(log)
    assert len(appended) == len(set(appended))
    later = {(change.object_key, change.version) for change in playback.changes[FIRST:]}
    assert later <= set(appended)


async def test_decisions_are_compared_as_in_the_recording() -> None:
    playback, log = recorded(), local.MemoryLog()
    playback.shown = FIRST
    async with playing(playback) as access, observing(access, log):
        await level(playback, log)
        playback.shown = COUNT
        await level(playback, log)
    shadow = Shadow()
    expected: dict[int, str] = {}
    for change in playback.changes:
        decided = recordings.compare(shadow, change)
        if decided is not None and change.version > playback.changes[FIRST - 1].version:
            expected[decided.version] = decided.verdict
    compared = [data for data in await observed(log) if isinstance(data, observations.DecisionCompared)]
    verdicts = {data.version: data.verdict for data in compared}
    # The first decision on a binding after the list was made from a version that the observer did not see.
    assert len(verdicts) > len(expected) * 0.5
    assert verdicts.keys() <= expected.keys()
    assert {version for version, verdict in verdicts.items() if verdict == "unexplained"} == set()


async def test_watch_continues_from_a_bookmark_without_a_list() -> None:
    """Kinds that seldom change would continue from versions that the API has forgotten."""
    playback, log = recorded(), local.MemoryLog()
    playback.shown = FIRST
    async with playing(playback) as access, observing(access, log):
        await level(playback, log)
        lists = playback.lists
        playback.shown = COUNT
        await level(playback, log)
        kinds = {change.head.kind for change in playback.changes}
        async with asyncio.timeout(20):
            while playback.bookmarks < len(kinds):  # noqa: ASYNC110  # the API has no event for it
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        playback.compacted = playback.version - BOOKMARKED
        playback.cut()
        await asyncio.sleep(1)
        assert playback.lists == lists


async def test_secrets_of_policies_are_digests_in_the_log_and_config_maps_are_not() -> None:
    selectors = [{"apiVersion": "v1", "kind": kind} for kind in ("Secret", "ConfigMap")]
    made: list[Json] = [
        {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "PropagationPolicy",
            "spec": {"resourceSelectors": selectors},
        },
        {"apiVersion": "v1", "kind": "Secret", "data": {"k": "aHVudGVyMg=="}},
        {"apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "plain"}},
    ]
    changes: list[recordings.Change] = []
    for version, value in enumerate((*made, {**made[1], "stringData": {"k": "hunter2"}}), 1):
        metadata = {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": str(version)}
        changes.append(recordings.change("MODIFIED", {**value, "metadata": metadata}))
    playback, log = Playback(changes), local.MemoryLog()
    playback.shown = len(changes) - 1
    async with playing(playback) as access, observing(access, log):
        await level(playback, log)
        playback.shown += 1
        await level(playback, log)
    text = b"".join(record.value for record in await log.read(topics.OBSERVATIONS, 0, 0, 100)).decode()
    assert "plain" in text
    assert "sha256:" in text
    assert "hunter2" not in text
    assert "aHVudGVyMg" not in text


async def test_list_whose_pages_expire_is_read_at_once() -> None:
    playback, log = recorded(), local.MemoryLog()
    playback.shown, playback.forgets_pages = FIRST, True
    assert len(playback.objects("Event")) > LIST_OBJECTS
    async with playing(playback) as access, observing(access, log):
        await level(playback, log)


async def test_kind_whose_server_is_down_is_observed_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.observer.observer._DISCOVERED_S", 0.1)
    playback, log = recorded(ROUND), local.MemoryLog()
    playback.shown, playback.unserved = ROUND, frozenset({"Cluster"})
    async with playing(playback) as access, observing(access, log) as observer:
        while not log.last_number():
            await log.wait(log.last_number())
        assert not observer.complete.is_set()
        playback.unserved = frozenset()
        await level(playback, log)


@pytest.mark.parametrize("is_compacted", [False, True])
async def test_restarted_observer_continues(is_compacted: bool) -> None:
    playback, log = recorded(), local.MemoryLog()
    playback.shown = FIRST
    async with playing(playback) as access:
        async with observing(access, log):
            await level(playback, log)
        lists, before = playback.lists, await versions(log)
        playback.shown = COUNT
        if is_compacted:
            playback.compact()
        async with observing(access, log) as observer:
            await level(playback, log)
            assert (playback.lists > lists) == is_compacted or observer.report.decisions
        appended = await versions(log)
    assert appended[: len(before)] == before
    assert len(appended) == len(set(appended))


@pytest.mark.parametrize("is_running", [True, False])
async def test_control_plane_restored_from_a_backup_is_listed_again(is_running: bool) -> None:
    playback, log = recorded(FIRST), local.MemoryLog()
    playback.shown = FIRST // 2
    async with playing(playback) as access:
        async with observing(access, log):
            await level(playback, log)
            playback.shown = FIRST - ROUND
            await level(playback, log)
            if is_running:
                playback.restore(FIRST // 3, ROUND // 10)
                await level(playback, log)
        if not is_running:
            playback.restore(FIRST // 3, ROUND // 10)
        count = playback.shown
        async with observing(access, log):
            await level(playback, log)
            playback.shown += ROUND // 5
            await level(playback, log)
            playback.shown += ROUND // 5
        async with observing(access, log):
            await level(playback, log)
            playback.shown = len(playback.changes)
            await level(playback, log)
    history = await observed(log)
    (at,) = [n for n, data in enumerate(history) if isinstance(data, observations.ControlPlaneRestored)]
    after = [
        ((data.kind, data.namespace, data.name), data.version)
        for data in history[at:]
        if isinstance(data, observations.ObjectObserved | observations.ObjectVanished) and data.version
    ]
    assert len(after) == len(set(after))
    # Some objects are only deleted in the other history.
    later = {(change.object_key, change.version) for change in playback.changes[count:] if not change.is_gone}
    assert later <= set(after)
    records = await log.read(topics.OBSERVATIONS, 0, 0, 10 * COUNT)
    assert len({record.headers["ce_id"] for record in records}) == len(records)


@pytest.mark.parametrize("seed", range(5))
async def test_nothing_is_lost_or_repeated_under_random_faults(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  # an example, not a secret
    playback, log = recorded(ROUND), local.MemoryLog()
    playback.shown = ROUND // 4
    async with playing(playback) as access:
        for end in (ROUND // 2, ROUND):
            async with observing(access, log):
                while playback.shown < end:
                    playback.shown = min(playback.shown + chance.randrange(100), end)
                    playback.faults = [chance.choice([401, 429, 500, 503])] * chance.randrange(3)
                    if chance.random() < FAULTS:
                        playback.cut()
                    if chance.random() < FAULTS / 2:
                        playback.compact()
                    await asyncio.sleep(chance.random() / 20)
                playback.faults = []
                await level(playback, log)
    appended = await versions(log)
    assert len(appended) == len(set(appended))
    assert playback.refused == 0
