"""Pages of lists, and dry runs, in the API of a simulated member."""

from tests.api.kube.client import MEMBER, member
from tests.builders.manifests import config_map, deployment

MAPS = f"{MEMBER}/api/v1/namespaces/default/configmaps"
WEB = f"{MEMBER}/apis/apps/v1/namespaces/default/deployments"


async def test_each_page_reports_the_remaining_item_count() -> None:
    async with member() as client:
        for name in "abcde":
            assert (await client.post(MAPS, json=config_map(name))).is_success
        count = len((await client.get(MAPS)).json()["items"])
        token, is_first = "", True
        while token or is_first:
            page = (await client.get(MAPS, params={"limit": 2, "continue": token})).json()
            count -= len(page["items"])
            assert page["metadata"].get("remainingItemCount", 0) == count
            token = page["metadata"].get("continue", "")
            is_first = False
        assert count == 0
        chosen = await client.get(MAPS, params={"limit": 2, "fieldSelector": "metadata.name!=a"})
        assert "remainingItemCount" not in chosen.json()["metadata"]


async def test_dry_run_of_a_new_object_shows_a_uid() -> None:
    async with member() as client:
        for path, value in ((MAPS, config_map("one")), (WEB, deployment("one", 1))):
            dry = (await client.post(path, json=value, params={"dryRun": "All"})).json()
            made = (await client.post(path, json=value)).json()
            assert dry["metadata"]["creationTimestamp"] == made["metadata"]["creationTimestamp"]
            assert dry["metadata"]["uid"] not in {"", made["metadata"]["uid"]}
            again = await client.put(f"{path}/one", json=value, params={"dryRun": "All"})
            assert again.json()["metadata"]["uid"] == made["metadata"]["uid"]
