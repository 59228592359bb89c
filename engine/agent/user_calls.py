"""Forward requests of the control plane's users to the member's API, and upload the responses."""

from collections.abc import AsyncGenerator
from http import HTTPStatus
from typing import Final

import anyio
import msgspec

from engine import diagnostics
from engine.agent import messages
from engine.agent.api_errors import ApiError
from engine.agent.gateway_client import GatewayClient
from engine.agent.kubeconfigs import KubeconfigError
from engine.agent.member_api import MemberApi
from events import records
from events.json_values import Json

_CALLS_MAX: Final = 32
"""Maximum number of concurrent requests of users; the limit of the agent's own requests is separate."""

_log = diagnostics.logger("agent")


class UserCalls:
    """Forwards the requests of users; ``run`` receives them until the connection ends."""

    def __init__(self, cluster: str, gateway: GatewayClient, api: MemberApi) -> None:
        self._cluster = cluster
        self._gateway = gateway
        self._api = api
        self._limiter = anyio.CapacityLimiter(_CALLS_MAX)
        self._scopes: dict[str, anyio.CancelScope] = {}
        """The scopes of the requests that are being carried out, by id."""

    async def run(self) -> None:
        """Carry out requests until the connection to the gateway ends; raises ApiError."""
        failure: ApiError | None = None
        async with anyio.create_task_group() as tasks:
            try:
                async for call in self._gateway.calls():
                    if not call.is_ended:
                        scope = self._scopes[call.id] = anyio.CancelScope()
                        tasks.start_soon(self._carry_out, call, scope)
                    elif call.id in self._scopes:
                        self._scopes[call.id].cancel()
            except ApiError as error:
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            # Raised here, because the task group would wrap it in an ExceptionGroup.
            raise failure

    async def _carry_out(self, call: messages.Call, scope: anyio.CancelScope) -> None:
        try:
            # A watch may send nothing for long, so its upload does not show that the user has left.
            with scope:
                async with self._limiter:
                    await self._forward(call)
        finally:
            del self._scopes[call.id]

    async def _forward(self, call: messages.Call) -> None:
        try:
            async with self._api.forwarded(call) as response:
                await self._gateway.reply(call.id, response.status, response.content_type, response.body)
        except (ApiError, KubeconfigError) as error:
            _log.info("user request failed", cluster=self._cluster, error=str(error))
            await self._refuse(call, str(error))

    async def _refuse(self, call: messages.Call, message: str) -> None:
        status: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "reason": "ServiceUnavailable",
            "message": message,
            "code": HTTPStatus.SERVICE_UNAVAILABLE,
        }

        async def body() -> AsyncGenerator[bytes]:
            yield msgspec.json.encode(status)

        try:
            await self._gateway.reply(call.id, HTTPStatus.SERVICE_UNAVAILABLE, records.JSON, body())
        except ApiError as error:
            _log.info("response to user not sent", cluster=self._cluster, error=str(error))
