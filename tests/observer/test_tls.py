"""The observer at APIs with TLS, by the files that its kubeconfig names; they change while it runs."""

import asyncio
import datetime as dt
import ssl
from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, nullcontext
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Mount, Router
from starlette.types import Message, Receive, Scope, Send

from engine.agent import kubeconfigs
from engine.agent.api_errors import UnreachableError
from engine.agent.discovery import preferred
from engine.agent.kubeconfigs import Access
from engine.agent.member_api import LIST_OBJECTS, MemberApi
from engine.bench import karmada_api
from engine.identity import certificates
from engine.log import local
from tests.agent.certificates import client_certificate
from tests.observer.observing import FIRST, ROUND, level, observing, recorded
from tests.observer.playback import Playback, playing
from tests.relay import Relay

pytestmark = pytest.mark.slow
NAME = "karmada.example"
TRUSTING = {"certificate-authority": "ca", "tls-server-name": NAME}
REFUSED = pytest.raises(UnreachableError, match="certificate verify failed")


class Secured:
    """An API behind TLS; ``renew`` gives the server, and the client's files, other certificates."""

    def __init__(self, url: str, directory: Path) -> None:
        self._relay = Relay(url)
        self._directory = directory
        self._server: asyncio.Server | None = None
        self._count = 0

    @property
    def url(self) -> str:
        return self._relay.url

    async def renew(self) -> None:
        """Serve with a certificate of another authority, and accept another certificate of the client only."""
        self._count += 1
        made = await asyncio.to_thread(self._certificates)
        certificate, key = await asyncio.to_thread(client_certificate, f"client-{self._count}")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(made.certificate, made.key)
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=certificate)
        port = (urlsplit(self.url).port or 0) if self.url else 0
        await self.close()
        self._server = await self._relay.serve(context, port)
        self._relay.start()
        for name, text in (("ca", made.authority.decode()), ("crt", certificate), ("key", key)):
            await asyncio.to_thread((self._directory / name).write_text, text)

    def _certificates(self) -> certificates.Certificates:
        directory = self._directory / str(self._count)
        directory.mkdir()
        return certificates.make(directory, dt.datetime.now(dt.UTC), (NAME,))

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self._relay.stop()

    async def access(self, **cluster: object) -> Access:
        """The access by a kubeconfig that names files, and has these fields of the cluster."""
        config = {
            "current-context": "there",
            "contexts": [{"name": "there", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": self.url, **cluster}}],
            "users": [{"name": "u", "user": {"client-certificate": "crt", "client-key": "key"}}],
        }
        path = self._directory / "config"
        await asyncio.to_thread(path.write_text, yaml.safe_dump(config))
        return await asyncio.to_thread(kubeconfigs.read, path)


@asynccontextmanager
async def secured(playback: Playback, directory: Path) -> AsyncGenerator[Secured]:
    async with playing(playback) as access:
        secured_api = Secured(access.server, directory)
        await secured_api.renew()
        try:
            yield secured_api
        finally:
            await secured_api.close()


async def test_renewed_files_of_the_kubeconfig_are_used(tmp_path: Path) -> None:
    playback, log = recorded(FIRST), local.MemoryLog()
    playback.shown = ROUND
    async with secured(playback, tmp_path) as api, observing(await api.access(**TRUSTING), log):
        await level(playback, log)
        playback.shown = FIRST
        await api.renew()
        await level(playback, log)


@pytest.mark.parametrize(
    ("fields", "answered"),
    [
        (TRUSTING, nullcontext()),
        ({**TRUSTING, "tls-server-name": "other.example"}, REFUSED),
        ({"certificate-authority": "ca"}, REFUSED),
        ({"tls-server-name": NAME}, REFUSED),
        ({"insecure-skip-tls-verify": True}, nullcontext()),
    ],
)
async def test_certificate_of_the_server_is_verified_as_the_kubeconfig_says(
    tmp_path: Path, fields: dict[str, object], answered: AbstractContextManager[object]
) -> None:
    async with (
        secured(recorded(ROUND), tmp_path) as api,
        aclosing(MemberApi(await api.access(**fields))) as client,
    ):
        with answered:
            assert await client.discover()


async def test_compressed_lists_are_read() -> None:
    playback, encodings = recorded(FIRST), set[bytes]()
    playback.shown = FIRST
    compressed = GZipMiddleware(Router(playback.routes()), minimum_size=128 * 1024, compresslevel=1)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            encodings.update(
                value for name, value in message.get("headers", ()) if name == b"content-encoding"
            )
            await send(message)

        await compressed(scope, receive, sent)

    async with (
        karmada_api.serving([Mount("", app=answer)]) as url,
        aclosing(MemberApi(Access(server=url))) as client,
    ):
        served = preferred(await client.discover())
        listed = await client.list(served["", "Event"])
    assert len(listed.items) == len(playback.objects("Event")) > LIST_OBJECTS
    assert encodings == {b"gzip"}
