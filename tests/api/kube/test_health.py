"""Health checks of the Kubernetes API: whole, and one check by name."""

import pytest

from tests.api.kube.client import api

NOT_FOUND = (404, "404 page not found\n")


@pytest.mark.parametrize("root", ["/healthz", "/livez", "/readyz"])
async def test_only_existing_checks_are_answered(root: str) -> None:
    async with api() as (client, _):
        for path, expected in (
            (root, (200, "ok")),
            (f"{root}/ping", (200, "ok")),
            (f"{root}/ping?verbose", (200, "ok")),
            (f"{root}?verbose", (200, f"[+]ping ok\n{root.strip('/')} check passed\n")),
            (f"{root}/foo", NOT_FOUND),
            (f"{root}/ping/foo", NOT_FOUND),
        ):
            answer = await client.get(path)
            assert (answer.status_code, answer.text) == expected, path
