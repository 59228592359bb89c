"""The layout of the pages: tables on narrow screens."""

import re

from tests.api.servers import client, serving
from tests.api.test_pages import WEB, moved


async def test_cells_on_narrow_screens_have_the_headings_of_their_columns() -> None:
    async with serving(await moved()) as services, client(services) as http:
        pages = [
            (await http.get(path)).text for path in ("/", f"/bindings/{WEB}", "/clusters", "/rebalancers")
        ]
        style = (await http.get("/style.css")).text
    tables = [table for page in pages for table in re.findall("<table.*?</table>", page, re.DOTALL)]
    assert tables
    labels = [
        (label, headings[column])
        for table in tables
        if (headings := re.findall('<th scope="col"[^>]*>(.*?)</th>', table))
        for row in re.findall("<tr.*?</tr>", table, re.DOTALL)[1:]
        for column, cell in enumerate(re.findall("<t[hd]\\b([^>]*)>", row))
        for label in re.findall('data-label="([^"]*)"', cell)
    ]
    assert {"Taints", "Replicas", "Free capacity", "Cause"} <= {label for label, _ in labels}
    assert [pair for pair in labels if pair[0] != pair[1]] == []
    assert "content: attr(data-label)" in style
