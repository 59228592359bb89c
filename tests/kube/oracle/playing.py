"""Play stories against an API server, and convert its answers into a comparable form."""

import json
import re
from collections.abc import Awaitable, Callable
from typing import Final, cast

import httpx
from msgspec import Struct

from events.json_values import Json
from tests.builders.manifests import manifest

JSON_PATCH: Final = "application/json-patch+json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_UID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_GENERATED: Final = re.compile(r"(made-by-prefix-)[a-z0-9]{5}")
_AGE: Final = re.compile(r"^(\d+[smhdy])+$")
_NOT_FOUND: Final = 404


class Answer(Struct, frozen=True, kw_only=True):
    """An answer: code, warnings, and the body (or the lines of a watch) without parts that differ each time."""

    story: str
    step: int
    request: str
    code: int
    warnings: list[str]
    body: object


Ask = Callable[..., Awaitable[Json]]
Story = Callable[[Ask, str], Awaitable[None]]
"""Sends requests by ``ask`` (method, path, body); the second argument is its own namespace."""


class Recorder:
    """Sends the requests of one story, and records the responses."""

    def __init__(self, client: httpx.AsyncClient, story: str) -> None:
        self._client = client
        self._story = story
        self._versions: dict[str, str] = {}
        self.answers: list[Answer] = []

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        kind: str = "application/json",
        accept: str = "",
        *,
        quiet: bool = False,
    ) -> Json:
        """Send a request, record the response, and return its body. A ``body`` that is a str is sent unchanged.

        With ``quiet`` the response is not recorded: for requests that are repeated until an object exists.
        """
        content = body if isinstance(body, str) or body is None else json.dumps(body)
        headers = {"accept": accept or "application/json", "user-agent": "oracle"}
        if content is not None:
            headers["content-type"] = kind
        answer = await self._client.request(method, path, content=content, headers=headers)
        if quiet:
            return cast("Json", answer.json()) if answer.is_success else {}
        warnings = [text.split('"', 1)[1].rsplit('"', 1)[0] for text in answer.headers.get_list("warning")]
        values = _values(answer, is_watch="watch=" in path)
        plain = [self._plain(value) for value in values]
        self.answers.append(
            Answer(
                story=self._story,
                step=len(self.answers),
                request=f"{method} {path}",
                code=answer.status_code,
                warnings=[self._text(text) for text in warnings],
                body=plain if "watch=" in path and answer.is_success else plain[0],
            )
        )
        return cast("Json", values[0]) if isinstance(values[0], dict) else {}

    def _plain(self, value: object, name: str = "") -> object:
        if isinstance(value, dict):
            fields = cast("Json", value)
            if fields.get("kind") == "Table":
                fields = _without_texts(fields)
            if "resourceVersion" in fields:
                fields = {**fields, "resourceVersion": self._version(fields)}
            if "continue" in fields:
                fields = {**fields, "continue": "<continue>"}
            return {key: self._plain(item, key) for key, item in fields.items()}
        if isinstance(value, list):
            return [self._plain(item, name) for item in cast("list[object]", value)]
        if isinstance(value, str):
            return "<age>" if name == "cells" and _AGE.match(value) else self._text(value)
        return value

    def _version(self, metadata: Json) -> str:
        """Replace versions of objects by the order of their first occurrence, and those of lists by a constant."""
        if not metadata.get("uid"):
            return "<version>" if metadata["resourceVersion"] else ""
        text = str(metadata["resourceVersion"])
        return self._versions.setdefault(text, f"<version {len(self._versions) + 1}>")

    def _text(self, text: str) -> str:
        if "\n" not in text and text.startswith("{"):
            return text
        text = _GENERATED.sub(r"\1<letters>", _INSTANT.sub("<instant>", _UID.sub("<uid>", text)))
        return re.sub(r"(ResourceVersion[^:]*: )\d+|(?<=object meta: )\d+", r"\1<version>", text)


def _values(answer: httpx.Response, *, is_watch: bool) -> list[object]:
    if "json" not in answer.headers.get("content-type", ""):
        return [answer.text]
    lines = answer.text.splitlines() if is_watch and answer.is_success else [answer.text]
    return [json.loads(line) for line in lines if line] or [""]


def _without_texts(table: Json) -> Json:
    """Return a table without unprinted parts: descriptions of columns, and managed fields of rows."""
    columns = [
        {name: item for name, item in column.items() if name != "description"}
        for column in cast("list[Json]", table["columnDefinitions"] or [])
    ]
    for row in cast("list[dict[str, dict[str, Json]]]", table["rows"] or []):
        row["object"]["metadata"].pop("managedFields", None)
    return {**table, "columnDefinitions": columns}


async def play(client: httpx.AsyncClient, name: str, story: Story) -> list[Answer]:
    """Return the answers to a story, played in its own namespace."""
    teller = Recorder(client, name)
    namespace = f"story-{name.replace('_', '-')}"
    made = manifest("v1", "Namespace", namespace)
    await teller.ask("POST", "/api/v1/namespaces", made, quiet=True)
    await story(teller.ask, namespace)
    return teller.answers
