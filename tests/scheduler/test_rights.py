"""No request of the observer or the scheduler is outside the roles in the repository."""

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import yaml
from starlette.requests import Request
from starlette.routing import BaseRoute, Mount, Router
from starlette.types import Receive, Scope, Send

import engine.observer
import engine.scheduler
from engine.agent.kubeconfigs import Access
from engine.bench import karmada_api
from engine.bench.karmada_api import binding, divided
from engine.log import local
from engine.observer.observer import KINDS
from tests import recordings
from tests.observer.observing import level, observing
from tests.observer.playback import Playback
from tests.scheduler.api import Json
from tests.scheduler.scheduling import karmada, scheduled, scheduling
from tests.waiting import until_async

OBSERVER: Final = Path(engine.observer.__file__).with_name("cluster-role.yaml")
SCHEDULER: Final = Path(engine.scheduler.__file__).with_name("role.yaml")
CHANGES: Final = 1_500
OBSERVED_GROUPS: Final = {group for group, _ in KINDS}


class Call(NamedTuple):
    """A request for objects."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str

    def is_allowed(self, rule: Json) -> bool:
        return (
            self.verb in rule["verbs"]
            and self.group in rule["apiGroups"]
            and not {"*", self.resource}.isdisjoint(rule["resources"])
            and ("resourceNames" not in rule or self.name in rule["resourceNames"])
        )


class Recorded:
    """An API that notes the requests."""

    def __init__(self, routes: Iterable[BaseRoute]) -> None:
        self._app = Router([*routes])
        self.calls: set[Call] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (call := call_of(Request(scope))) is not None:
            self.calls.add(call)
        await self._app(scope, receive, send)

    def outside(self, *files: Path) -> set[Call]:
        """Return the requests that no role of these files allows."""
        roles = [role for file in files for role in yaml.safe_load_all(file.read_text())]
        return {
            call
            for call in self.calls
            if not any(
                call.is_allowed(rule)
                for role in roles
                if role["metadata"].get("namespace") in {None, call.namespace}
                for rule in role["rules"]
            )
        }


def call_of(request: Request) -> Call | None:
    """Return the request for objects; None for discovery, which all users may read."""
    root, *words = request.url.path.strip("/").split("/")
    group = words.pop(0) if root == "apis" and words else ""
    if len(words) <= 1:
        return None
    words = words[1:]
    namespace = words[1] if words[0] == "namespaces" and words[2:] else ""
    plural, name, part = [*(words[2:] if namespace else words), "", ""][:3]
    verb = {"POST": "create", "PATCH": "patch", "PUT": "update", "DELETE": "delete"}.get(
        request.method, "get"
    )
    if verb == "get" and not name:
        verb = "watch" if request.query_params.get("watch") else "list"
    return Call(verb, group, f"{plural}/{part}" if part else plural, namespace, name)


@pytest.mark.slow
async def test_observer_needs_the_rights_of_its_role_only() -> None:
    playback = Playback(itertools.islice(recordings.changes(recordings.of_scenario("calm")), CHANGES))
    playback.shown = CHANGES
    api, log = Recorded(playback.routes()), local.MemoryLog()
    async with karmada_api.serving([Mount("", app=api)]) as url, observing(Access(server=url), log):
        await level(playback, log)
    assert {call.verb for call in api.calls} == {"list", "watch"}
    # Kinds of templates that policies select are to be added.
    templates = {change.head.api_version.rpartition("/")[0] for change in playback.changes} - OBSERVED_GROUPS
    assert {call for call in api.outside(OBSERVER) if call.group not in templates} == set()


async def test_scheduler_needs_the_rights_of_both_roles_only() -> None:
    plane = karmada()
    api = Recorded(plane.routes())
    async with (
        karmada_api.serving([Mount("", app=api)]) as url,
        scheduling(Access(server=url), local.MemoryLog()),
    ):
        plane.put("resourcebindings", binding("web", 4, divided("member1", "member2")))
        await until_async(lambda: scheduled(plane, "web") == "Success" and bool(plane.of_kind("events")))
    assert {call.verb for call in api.calls} == {"get", "list", "watch", "create", "patch"}
    assert api.outside(OBSERVER, SCHEDULER) == set()
    # The observer's role alone does not suffice: it writes nothing.
    assert {call.verb for call in api.outside(OBSERVER)} == {"get", "create", "patch"}
