"""A member whose admission webhook does not respond: the API answers 500 for the objects that it checks."""

from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response

from engine.bench import karmada_api
from tests.agent.in_process import Gateway, Member, key_of, running
from tests.waiting import until_async

pytestmark = pytest.mark.virtual_time


class Checking(Member):
    """A member that answers 500 to writes of the Deployments in ``failing``."""

    def __init__(self) -> None:
        super().__init__()
        self.failing = {"web"}

    async def _object(self, request: Request) -> Response:
        if request.method == "PATCH" and request.path_params["name"] in self.failing:
            return karmada_api.status(500, "InternalError")
        return await super()._object(request)


async def test_object_for_which_a_webhook_does_not_respond_is_reported(tmp_path: Path) -> None:
    gateway, member = Gateway(), Checking()
    async with running(gateway, member, tmp_path / "agent.sqlite"):
        gateway.send("web", 1, 2)
        gateway.send("api", 1, 1)
        await until_async(lambda: set(gateway.reports) == {key_of("web"), key_of("api")})
        assert "deployments/web: 500" in gateway.reports[key_of("web")].fault
        assert not gateway.reports[key_of("api")].fault
        assert all(gateway.ready)
        member.failing.clear()
        await until_async(lambda: not gateway.reports[key_of("web")].fault)
    assert member.objects["web"]["spec"]["replicas"] == 2
