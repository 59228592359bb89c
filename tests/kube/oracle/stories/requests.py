"""Paths and objects of requests that several stories make."""

from typing import Final, cast

from tests.kube.oracle.objects import Json

NOTHING: Final[Json] = {}
NO_VERBS: Final[list[str]] = []
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def maps(ns: str) -> str:
    return f"/api/v1/namespaces/{ns}/configmaps"


def deployments(ns: str) -> str:
    return f"/apis/apps/v1/namespaces/{ns}/deployments"


def metadata_of(value: Json) -> Json:
    return cast("Json", value["metadata"])


def version_of(value: Json) -> str:
    return str(metadata_of(value)["resourceVersion"])


def with_metadata(value: Json, **metadata: object) -> Json:
    """Return the object with additional metadata."""
    return {**value, "metadata": {**metadata_of(value), **metadata}}
