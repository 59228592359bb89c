"""The page with the bindings of an observed control plane."""

import html
import re
from collections.abc import Iterable
from itertools import islice

import httpx
import msgspec

from events import vocabulary
from events.json_values import objects_at
from tests import recordings
from tests.api.servers import client, serving
from tests.recordings import Change

CHANGES = list(islice(recordings.own_changes("calm-1"), 8_000))
HALF = 3_000


def bindings(changes: Iterable[Change]) -> list[str]:
    """Keys of the bindings that exist after the changes."""
    newest = {
        change.object_key: change for change in changes if change.object_key[0] in vocabulary.BINDING_KINDS
    }
    kept = (identity for identity, change in newest.items() if not change.is_gone)
    return sorted(f"{namespace}/{name}" if namespace else name for _, namespace, name in kept)


def newest_clusters(key: str) -> list[str]:
    """Names of the clusters to which a binding was last assigned."""
    last = [
        change
        for change in CHANGES
        if change.object_key[0] in vocabulary.BINDING_KINDS
        and key == "/".join(filter(None, change.object_key[1:]))
    ][-1]
    clusters = objects_at(msgspec.json.decode(last.manifest), "spec", "clusters")
    return [str(cluster["name"]) for cluster in clusters]


async def shown(http: httpx.AsyncClient, path: str) -> list[str]:
    """Keys of the bindings on a page and on those after it."""
    page = (await http.get(path)).text
    keys = re.findall(r'<a href="/timeline/([^"?]+)', page)
    more = re.search(r'<a href="/([^"]*continue=[^"]+)">More</a>', page)
    return keys + (await shown(http, f"/{html.unescape(more[1])}") if more else [])


async def test_bindings_of_an_observed_control_plane_are_listed_as_it_last_showed_them() -> None:
    records = recordings.observed(CHANGES)
    async with serving(records) as services, client(services) as http:
        listed, earlier = await shown(http, "/"), await shown(http, f"/?asOf={HALF}")
        page = (await http.get("/")).text
        story = await http.get(f"/timeline/{listed[0]}")
    assert len(listed) > 200, "more than a page"
    assert listed == bindings(CHANGES)
    assert earlier == bindings(CHANGES[:HALF])
    assert [name for name in newest_clusters(listed[0]) if name not in page] == []
    assert story.status_code == 200
