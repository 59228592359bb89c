"""One certificate authority and one token for all replicas on a log, so that each accepts what another signed.

The first replica writes the fingerprint of its keys to the log; the keys stay in its directory. A later replica writes
a request with its own public key. Any replica that has the keys answers with the keys, encrypted to that public key.
A reader of the log learns nothing; a writer of the log could make itself an administrator anyway. If no replica
answers because all other directories are lost, the new replica's own keys become the shared keys. Everything that was
signed before then becomes invalid.

All of this is stored in ConfigMaps of ``karmada-system`` (``engine.writing.edits.rights_checks``).
"""

import asyncio
import base64
import contextlib
import datetime as dt
import hashlib
import secrets
import time
from pathlib import Path
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from engine import diagnostics
from engine.identity import certificates, sealing, server_token
from engine.kubeapi.errors.status_objects import StatusError
from engine.log.port import LogError
from engine.writing.edits import rights_checks
from engine.writing.mutations import Edit, Edited, Target
from engine.writing.object_changes import Change, Removal
from engine.writing.read_side import ReadSide
from engine.writing.write_api import ProjectedObjects, WriteApi
from events.json_values import Json
from events.kube_objects import KubeObject
from projections import object_tables
from projections.port import ProjectionError, Views

ANSWER_SECONDS: Final = 3.0
"""Seconds to wait for the keys. A replica that has the keys answers within half a second."""

_POLL_SECONDS: Final = 0.1
_REQUESTS_SECONDS: Final = 0.25
_ID_BYTES: Final = 8
_MAPS: Final = object_tables.Kind("v1", "ConfigMap")
_log: Final = diagnostics.logger(__name__)


class Keys(Struct, frozen=True, kw_only=True):
    """The shared keys: the authority's certificate and key (PEM), and the token."""

    certificate: str
    key: str
    token: str

    @property
    def fingerprint(self) -> str:
        """Hash that identifies the keys. It reveals nothing about the secret keys, which are long and random."""
        return hashlib.sha256(msgspec.json.encode((self.certificate, self.key, self.token))).hexdigest()


def load_or_create(directory: Path) -> Keys:
    """Return the keys of a directory; create missing ones."""
    certificate, key = certificates.authority(directory, dt.datetime.now(dt.UTC))
    return Keys(
        certificate=certificate.decode(), key=key.decode(), token=server_token.load_or_create(directory)
    )


async def share(
    directory: Path, write_api: WriteApi, views: Views, *, answer_seconds: float = ANSWER_SECONDS
) -> None:
    """Get the shared keys from another replica; publish own keys if none are published or no replica answers."""
    stored = ProjectedObjects(views)
    try:
        own = await asyncio.to_thread(load_or_create, directory)
        unanswered = ""
        # Another new replica may publish its keys first; the next iteration then requests those.
        while (published := await _publish(write_api, own, unanswered)) != own.fingerprint:
            received = await _requested_keys(write_api, stored, published, answer_seconds)
            if received is not None:
                await asyncio.to_thread(_keep, directory, received)
                _log.info("keys received from another replica")
                return
            _log.warning("no replica answered; publishing own keys")
            unanswered = published
    except (StatusError, LogError, ProjectionError) as error:
        _log.warning("keys not shared; using own keys", error=str(error))


async def answer(reads: ReadSide, write_api: WriteApi, directory: Path) -> None:
    """Answer requests for the keys until the process stops."""
    own = await asyncio.to_thread(load_or_create, directory)
    after = 0
    while await reads.is_more(after):
        after = reads.views.folded
        try:
            for name, reader in await asyncio.to_thread(_open_requests, reads.views, own.fingerprint):
                with contextlib.suppress(sealing.SealError):
                    await _change(write_api, name, _sealed(own, reader))
        except (StatusError, LogError, ProjectionError) as error:
            _log.warning("key request not answered", error=str(error))
            after = 0
        await asyncio.sleep(_REQUESTS_SECONDS)


async def _publish(write_api: WriteApi, own: Keys, replaced_fingerprint: str) -> str:
    """Publish ``own`` keys as ``_Publication`` does; return the fingerprint that is published afterwards."""
    outcome = await _change(write_api, rights_checks.KEYS, _Publication(own, replaced_fingerprint))
    return str(_data(outcome).get("fingerprint"))


class _Publication(Struct, frozen=True):
    """Publish ``own`` keys if no keys are published, or to replace those with ``replaced_fingerprint``."""

    own: Keys
    replaced_fingerprint: str

    def apply(self, live: KubeObject | None) -> Edited:
        if live is not None and _data(live).get("fingerprint") not in ("", None, self.replaced_fingerprint):
            return Edited(live)
        data: Json = {"fingerprint": self.own.fingerprint, "authority": self.own.certificate}
        return Edited(_object(rights_checks.KEYS, data, live))


class _Request(Struct, frozen=True):
    """Request the keys with this fingerprint, to be sealed for the requester's key ``public`` (X25519, base64)."""

    name: str
    fingerprint: str
    public: str

    def apply(self, live: KubeObject | None) -> Edited:
        return Edited(live or _object(self.name, {"for": self.fingerprint, "reader": self.public}, live))


class _SealedAnswer(Struct, frozen=True):
    """Add the sealed answer to a request; the edit fails if the request has been deleted."""

    text: str

    def apply(self, live: KubeObject | None) -> Edited:
        if live is None:
            raise StatusError(404, "NotFound", "the key request no longer exists")
        data = _data(live)
        return Edited(live.with_fields({"data": {**data, "sealed": data.get("sealed") or self.text}}))


async def _requested_keys(
    write_api: WriteApi, stored: ProjectedObjects, fingerprint: str, seconds: float
) -> Keys | None:
    """Request the keys with this fingerprint from the other replicas; None if none answers."""
    own = X25519PrivateKey.generate()
    name = rights_checks.KEY_REQUEST_PREFIX + secrets.token_hex(_ID_BYTES)
    public = base64.b64encode(own.public_key().public_bytes_raw()).decode()
    await _change(write_api, name, _Request(name, fingerprint, public))
    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline:
            target = _target(name)
            request = (await stored.objects((target.key,))).get(target.key)
            data = {} if request is None else _data(request.content)
            if "sealed" in data:
                return _opened(str(data["sealed"]), own, fingerprint)
            await asyncio.sleep(_POLL_SECONDS)
        return None
    finally:
        with contextlib.suppress(StatusError):  # the request stays, which does no harm
            await write_api.change_known(Removal(target=_target(name), now_ms=0))


def _opened(text: str, own: X25519PrivateKey, fingerprint: str) -> Keys | None:
    try:
        content = sealing.opened(base64.b64decode(text), own, fingerprint.encode())
        keys = msgspec.json.decode(content, type=Keys)
    except (sealing.SealError, msgspec.MsgspecError, ValueError):
        return None
    return keys if keys.fingerprint == fingerprint else None


def _open_requests(views: Views, fingerprint: str) -> list[tuple[str, bytes]]:
    """Return the requests for the keys with this fingerprint: object name and public key."""
    selection = object_tables.Selection(kind=_MAPS, namespace=rights_checks.KEYS_NAMESPACE)
    with views.store.reading() as rows:
        items = object_tables.page(rows, selection).items
    requests: list[tuple[str, bytes]] = []
    for item in items:
        name, data = item.name, _data(item)
        if (
            name.startswith(rights_checks.KEY_REQUEST_PREFIX)
            and data.get("for") == fingerprint
            and "sealed" not in data
        ):
            try:
                requests.append((name, base64.b64decode(str(data.get("reader")))))
            except ValueError:
                continue  # The public key is malformed, so an answer could not be read.
    return requests


def _sealed(own: Keys, reader: bytes) -> _SealedAnswer:
    """The answer to a request with this public key; raises SealError."""
    text = sealing.sealed(msgspec.json.encode(own), reader, own.fingerprint.encode())
    return _SealedAnswer(base64.b64encode(text).decode())


def _keep(directory: Path, keys: Keys) -> None:
    certificates.write_authority(directory, keys.certificate.encode(), keys.key.encode())
    server_token.write(directory, keys.token)


async def _change(write_api: WriteApi, name: str, edit: Edit) -> KubeObject:
    """Carry out an edit; return the object after it."""
    return (await write_api.change_known(Change(target=_target(name), edit=edit))).mutated.value


def _target(name: str) -> Target:
    return Target(api_version="v1", kind="ConfigMap", namespace=rights_checks.KEYS_NAMESPACE, name=name)


def _object(name: str, data: Json, live: KubeObject | None) -> KubeObject:
    new = {"name": name, "namespace": rights_checks.KEYS_NAMESPACE}
    metadata = new if live is None else live.metadata or new
    return KubeObject({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def _data(value: KubeObject) -> Json:
    return value.object_at("data")
