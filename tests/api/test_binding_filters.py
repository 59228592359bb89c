"""The page of bindings: its filters and pages."""

import re

from tests.api.servers import client, serving
from tests.api.story_records import WEB, moved
from tests.builders.inputs import key


async def test_bindings_of_a_cluster_have_a_page() -> None:
    async with serving(await moved()) as services, client(services) as http:
        members = (await http.get("/clusters?asOf=20")).text
        assigned = (await http.get("/?cluster=member2")).text
        earlier = (await http.get("/?cluster=member2&asOf=20")).text
        unknown = (await http.get("/?cluster=member9")).text
        refused = await http.get("/clusters?cluster=member2")

    assert 'href="/?cluster=member2&amp;asOf=20"' in members
    assert f'href="/bindings/{WEB}"' in assigned
    assert key("lost") not in assigned
    assert 'href="/?cluster=member2">Show the current state' in earlier, "the state changes, the filter stays"
    assert "No workload is assigned to this cluster." in unknown
    assert refused.status_code == 400


async def test_form_filters_the_bindings() -> None:
    async with serving(await moved()) as services, client(services) as http:
        matching = (await http.get("/?namespace=&kind=deploy&name=web&cluster=&labelSelector=")).text
        others = (await http.get("/?name=lost&asOf=20&limit=1")).text
        unknown = (await http.get("/?namespace=shop")).text
        refused = await http.get("/?labelSelector=a===")

    form = matching[matching.index('<form class="filter"') :]
    assert '<input name="kind" value="deploy"' in form
    assert f'href="/bindings/{WEB}"' in matching
    assert key("lost") not in matching
    assert '<input type="hidden" name="asOf" value="20">' in others[others.index('<form class="filter"') :]
    assert f'href="/bindings/{WEB}' not in others
    assert "No binding matches the filter." in unknown
    assert refused.status_code == 400


async def test_page_of_bindings_links_once_to_the_next_one() -> None:
    async with serving(await moved()) as services, client(services) as http:
        first = (await http.get("/?limit=1")).text
        (link,) = re.findall('<a href="([^"]*)">More</a>', first)
        second = (await http.get(link.replace("&amp;", "&"))).text
    shown = [re.findall('href="/bindings/([^"?]*)"', page) for page in (first, second)]
    assert [len(keys) for keys in shown] == [1, 1]
    assert shown[0] != shown[1]
    assert first.index("</table>") < first.index(">More</a>")
