"""Faults of a Kubernetes API, put in front of any server: each happens with a probability of its own."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Mount, Router
from starlette.types import Message, Receive, Scope, Send

from engine.agent.kubeconfigs import Access
from engine.bench import karmada_api
from engine.bench.karmada_api import status
from tests.relay import Relay, relayed
from tests.rounds import ROUNDS

SEEDS: Final = range(20 * ROUNDS)
HOUR_MS: Final = 3_600_000
_RETRIED_S: Final = 1
_HAPPENED_S: Final = 60
_GONE: Final = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}\n'


class Disturbing:
    """An API in front of routes, behind a relay; ``happened`` counts the faults, of which the first is certain."""

    def __init__(self, routes: Sequence[BaseRoute], seed: int, directory: Path) -> None:
        self.chance = random.Random(seed)  # noqa: S311  # an example, not a secret
        self._app = Router(routes)
        self._token_file = directory / f"token-{seed}"
        self.happened: Counter[str] = Counter()
        self.clock_ms = 1_000_000 * HOUR_MS
        """The client's clock."""
        self.throttled = 0.0
        """Of all requests: answered 429, half of them with Retry-After."""
        self.cut = 0.0
        """Of the parts of watches: cut at any byte, with their connection."""
        self.gone = 0.0
        """Of all watches, and of their parts: 410, by status or by an event of type ERROR."""
        self.doubled = 0.0
        """Of the parts of watches and of lists: sent twice, lists in any order with some objects twice."""
        self.token = ""
        """The only accepted bearer token."""

    def heal(self) -> None:
        """End all faults."""
        self.throttled = self.cut = self.gone = self.doubled = 0.0

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[Relay]:
        """Serve the API until the block ends; yields the relay to it."""
        self.renew("first")
        async with karmada_api.serving([Mount("", app=self)]) as url, relayed(url) as relay:
            yield relay

    def access(self, relay: Relay) -> Access:
        return Access(server=relay.url, token_file=str(self._token_file))

    async def pause(self) -> None:
        await asyncio.sleep(self.chance.random() / 5)

    def expire(self) -> None:
        """Accept no token."""
        self.token = "expired"  # noqa: S105  # no secret
        self._token_file.unlink()

    def renew(self, token: str) -> None:
        """Accept a token, which the client's file has from now on."""
        self.token = token
        self._token_file.write_text(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        if headers.get(b"authorization") != f"Bearer {self.token}".encode():
            self.happened["unauthorized"] += 1
            await status(401, "Unauthorized")(scope, receive, send)
        elif self._happens("throttled", self.throttled):
            refused = status(429, "TooManyRequests")
            if self.chance.random() < 0.5:
                refused.headers["retry-after"] = str(_RETRIED_S)
            await refused(scope, receive, send)
        elif b"watch=true" in scope["query_string"]:
            if self._happens("gone", self.gone):
                await status(410, "Expired")(scope, receive, send)
            else:
                await self._app(scope, receive, self._watching(send))
        elif scope["method"] == "GET" and self.doubled:
            await self._app(scope, receive, self._listing(scope, receive, send))
        else:
            await self._app(scope, receive, send)

    def _happens(self, name: str, probability: float) -> bool:
        is_first = probability > 0 and not self.happened[name]
        happens = is_first or self.chance.random() < probability
        self.happened[name] += happens
        return happens

    def _watching(self, send: Send) -> Send:
        async def sent(message: Message) -> None:
            part = message.get("body", b"")
            if part and self._happens("cut", self.cut):
                await send({**message, "body": part[: self.chance.randrange(1, len(part))]})
                raise ConnectionAbortedError
            if part and self._happens("gone", self.gone):
                await send({**message, "body": _GONE, "more_body": True})
                raise ConnectionAbortedError
            if part and self._happens("doubled", self.doubled):
                message = {**message, "body": part * 2}
            await send(message)

        return sent

    def _listing(self, scope: Scope, receive: Receive, send: Send) -> Send:
        parts: list[bytes] = []

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.body":
                parts.append(message.get("body", b""))
                if not message.get("more_body"):
                    value = msgspec.json.decode(b"".join(parts))
                    if "metadata" in value and "items" in value:
                        value["items"] += [item for item in value["items"] if self._happens("doubled", 0.5)]
                        self.chance.shuffle(value["items"])
                    code = 404 if value.get("code") == 404 else 200
                    await JSONResponse(value, code)(scope, receive, send)

        return sent


async def _restart(api: Disturbing, relay: Relay) -> None:
    relay.stop()
    api.happened["restart"] += 1
    await api.pause()
    relay.start()


async def _cut(api: Disturbing, _relay: Relay) -> None:
    api.cut = 0.3


async def _forget(api: Disturbing, _relay: Relay) -> None:
    api.gone = 0.3


async def _double(api: Disturbing, _relay: Relay) -> None:
    api.doubled, api.gone = 0.5, 0.1


async def _throttle(api: Disturbing, _relay: Relay) -> None:
    api.throttled, api.cut = 0.2, 0.5


async def _expire_token(api: Disturbing, _relay: Relay) -> None:
    """The API refuses the old token before the file has the new one, and the file is missing for a moment."""
    api.cut = 0.3
    api.expire()
    await api.pause()
    api.renew(f"token-{api.chance.random()}")


async def _partition(api: Disturbing, relay: Relay) -> None:
    relay.passing.clear()
    api.happened["partition"] += 1
    await api.pause()
    relay.passing.set()


async def _skew(api: Disturbing, _relay: Relay) -> None:
    api.clock_ms += api.chance.randrange(-HOUR_MS, HOUR_MS)
    api.happened["skew"] += 1
    api.cut = 0.1


FAULTS: Final[dict[str, Callable[[Disturbing, Relay], Coroutine[None, None, None]]]] = {
    "restart": _restart,
    "cut": _cut,
    "gone": _forget,
    "doubled": _double,
    "throttled": _throttle,
    "unauthorized": _expire_token,
    "partition": _partition,
    "skew": _skew,
}
"""Each begins or makes one fault, which ``happened`` counts under its name."""


async def in_rounds(play: Callable[[int], Coroutine[None, None, None]]) -> None:
    """Play all rounds side by side, each with a seed."""
    async with asyncio.TaskGroup() as rounds:
        for seed in SEEDS:
            rounds.create_task(play(seed))


async def disturb(fault: str, api: Disturbing, relay: Relay, changes: Iterable[None]) -> None:
    """Let a fault happen with each of the changes, and at least once, then end all faults."""
    for _ in changes:
        disturbance = asyncio.create_task(FAULTS[fault](api, relay))
        await asyncio.sleep(0)
        await api.pause()
        await disturbance
    async with asyncio.timeout(_HAPPENED_S):
        while not api.happened[fault]:
            await api.pause()
    api.heal()
