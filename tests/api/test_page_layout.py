"""The layout of the pages: tables on narrow screens, contrast of colours."""

import re

import pytest

from engine.http.pages import errors
from tests.api.servers import client, serving
from tests.api.story_records import WEB, moved


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


@pytest.mark.parametrize("color", ["good", "bad"])
def test_badges_have_enough_contrast_on_white(color: str) -> None:
    style = (errors.TEMPLATES / "style.css").read_text()
    text = bytes.fromhex(re.findall(f"--{color}: light-dark\\(#(.{{6}})", style)[0])
    background = bytes(round(0.14 * channel + 0.86 * 255) for channel in text)
    assert (luminance(background) + 0.05) / (luminance(text) + 0.05) >= 4.5, "WCAG 2, 1.4.3"


def luminance(color: bytes) -> float:
    """Return the relative luminance of an sRGB colour (WCAG 2)."""
    shares = (channel / 255 for channel in color)
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
