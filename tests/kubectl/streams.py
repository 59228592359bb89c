"""Requests that kubectl does not send: an HTTPS client with the server, token and CA of a kubeconfig."""

import base64
import json
import ssl
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, cast

import httpx

from events.json_values import Json

SECONDS: Final = 60.0


@contextmanager
def client(kubeconfig: Path) -> Generator[httpx.Client]:
    """An HTTP client for the control plane of a kubeconfig."""
    config = json.loads(kubeconfig.read_bytes())
    cluster = config["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    token = config["users"][0]["user"]["token"]
    with httpx.Client(
        base_url=cluster["server"],
        verify=ssl.create_default_context(cadata=authority),
        headers={"authorization": f"Bearer {token}"},
        timeout=SECONDS,
    ) as client:
        yield client


@contextmanager
def watching(client: httpx.Client, path: str, version: str) -> Generator[Iterator[Json]]:
    """Yield the events of a watch that begins at a resourceVersion."""
    query = {"watch": "true", "resourceVersion": version, "allowWatchBookmarks": "true"}
    with client.stream("GET", path, params=query) as answer:
        assert answer.status_code == 200, answer.read()
        yield (json.loads(line) for line in answer.iter_lines())


def version_of(value: Json) -> str:
    """Return the resourceVersion of an object or a list."""
    return str(cast("Json", value["metadata"])["resourceVersion"])


def name_of(value: Json) -> str:
    return str(cast("Json", value["metadata"])["name"])
