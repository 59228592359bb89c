"""Deprecated versions of custom kinds: each response about them has a warning, as in Kubernetes."""

from typing import cast

import pytest

from events.json_values import Json, object_at
from tests.api.kube.client import MERGE, api, watched
from tests.builders.manifests import definition, manifest

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFAULT = "example.io/v1beta1 Trial is deprecated; use example.io/v1 Trial"


def trials(**deprecated: object) -> Json:
    """Return a definition of the kind Trial with the versions v1 and v1beta1; the latter has these fields."""
    kind = definition("trials", "Trial")
    versions = cast("list[Json]", object_at(kind, "spec")["versions"])
    versions.append({**versions[0], "name": "v1beta1", "storage": False, **deprecated})
    return kind


@pytest.mark.parametrize(
    ("fields", "warning"),
    [
        ({"deprecated": True}, DEFAULT),
        ({"deprecated": True, "deprecationWarning": "use Attempts"}, "use Attempts"),
        ({"deprecationWarning": "not deprecated"}, ""),
        ({}, ""),
    ],
)
async def test_responses_about_a_deprecated_version_have_a_warning(
    fields: dict[str, object], warning: str
) -> None:
    expected = [f'299 - "{warning}"'] if warning else []
    async with api() as (client, services):
        await client.post(DEFINITIONS, json=trials(**fields))
        await services.catch_up()
        for version, warnings in (("v1beta1", expected), ("v1", [])):
            path = f"/apis/example.io/{version}/namespaces/default/trials"
            trial = manifest(f"example.io/{version}", "Trial", version, "default")
            answers = [
                await client.post(path, json=trial),
                await client.get(path),
                await client.get(f"{path}/{version}"),
                await client.patch(
                    f"{path}/{version}", json={"metadata": {"labels": {"a": "b"}}}, headers=MERGE
                ),
                await client.delete(f"{path}/{version}"),
            ]
            assert [answer.is_success for answer in answers] == [True] * len(answers)
            assert [answer.headers.get_list("warning") for answer in answers] == [warnings] * len(answers)


async def test_deprecated_version_without_a_newer_one_names_none() -> None:
    async with api() as (client, services):
        kind = trials(deprecated=True)
        cast("list[Json]", object_at(kind, "spec")["versions"])[0]["served"] = False
        await client.post(DEFINITIONS, json=kind)
        await services.catch_up()
        listed = await client.get("/apis/example.io/v1beta1/trials")
        assert listed.headers["warning"] == '299 - "example.io/v1beta1 Trial is deprecated"'


async def test_deprecated_version_can_be_watched() -> None:
    async with api() as (client, services):
        await client.post(DEFINITIONS, json=trials(deprecated=True))
        await services.catch_up()
        path = "/apis/example.io/v1beta1/namespaces/default/trials"
        await client.post(path, json=manifest("example.io/v1beta1", "Trial", "one", "default"))
        (line,) = await watched(services, f"{path}?watch=true", 1)
        assert line["type"] == "ADDED"
