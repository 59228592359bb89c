"""Detection of API servers that were restored from a backup."""

from typing import cast

import pytest

from engine.agent import reflector
from engine.agent.discovery import Resource
from engine.agent.member_api import MemberApi

PODS = Resource(api_version="v1", kind="Pod", plural="pods", namespaced=True)
NODES = Resource(api_version="v1", kind="Node", plural="nodes", namespaced=False)
GIZMOS = Resource(api_version="aggregated.io/v1", kind="Gizmo", plural="gizmos", namespaced=True)


class Versions:
    """An API that only returns the newest version of each kind."""

    def __init__(self, **newest: int | str) -> None:
        self.newest = newest

    async def newest_version(self, resource: Resource) -> str:
        return str(self.newest[resource.plural])


@pytest.fixture
def restores() -> list[tuple[int, int]]:
    return []


@pytest.fixture
def history(restores: list[tuple[int, int]]) -> reflector.History:
    return reflector.History(lambda seen, now: restores.append((seen, now)))


async def continued(
    history: reflector.History, versions: Versions, resource: Resource, version: int | str
) -> str:
    api = cast("MemberApi", versions)
    return await history.continued(api, resource, str(version), history.restored)


@pytest.mark.parametrize(("pods", "gizmos"), [(5_000, 7), (7, 5_000)])
async def test_kind_with_versions_of_its_own_is_no_sign_of_a_restore(
    pods: int, gizmos: int, history: reflector.History, restores: list[tuple[int, int]]
) -> None:
    versions = Versions(pods=pods, nodes=pods, gizmos=gizmos)
    for _ in range(2):
        for resource in (PODS, NODES, GIZMOS):
            version = versions.newest[resource.plural]
            history.add_version(str(version), resource)
            assert await continued(history, versions, resource, version) == str(version)
    assert restores == []
    versions.newest["gizmos"] = gizmos - 2
    assert not await continued(history, versions, GIZMOS, gizmos)
    versions.newest["gizmos"] = gizmos
    versions.newest["pods"] = versions.newest["nodes"] = pods - 2
    assert not await continued(history, versions, PODS, pods)
    assert restores == [(gizmos, gizmos - 2), (pods, pods - 2)]


async def test_restore_shows_at_a_kind_without_the_newest_version(
    history: reflector.History, restores: list[tuple[int, int]]
) -> None:
    history.add_version("90", NODES)
    history.add_version("100", PODS)
    assert not await continued(history, Versions(pods=95, nodes=95), NODES, 90)
    assert restores == [(100, 95)]


async def test_huge_versions_are_ignored(history: reflector.History, restores: list[tuple[int, int]]) -> None:
    history.add_version("100", PODS)
    history.add_version("9" * 5_000, PODS)
    assert history.newest == 100
    for newest in ("9" * 5_000, "a1"):
        assert await continued(history, Versions(pods=newest), PODS, 100) == "100"
    assert restores == []
