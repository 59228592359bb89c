"""Paths of the Kubernetes API: kind, namespace, name and subresource."""

from typing import Final

from msgspec import Struct

_OF_NAMESPACES: Final = ("status", "finalize")
_STEPS: Final = 3
"""Plural, name and subresource."""


class ApiPath(Struct, frozen=True, kw_only=True):
    """The parts of a path; absent ones are empty. ``rest`` follows the subresource, for proxies."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    part: str = ""
    rest: str = ""


def parse(path: str) -> ApiPath | None:
    """Parse ``/api/v1/...`` or ``/apis/GROUP/VERSION/...``; None if the path names no kind."""
    steps = path.strip("/").split("/")
    match steps:
        case ["api", "v1", *below] if below:
            return _resource_path("", "v1", below)
        case ["apis", group, version, *below] if below:
            return _resource_path(group, version, below)
        case _:
            return None


def _resource_path(group: str, version: str, steps: list[str]) -> ApiPath | None:
    namespace = ""
    match steps:
        case ["namespaces", _name]:
            pass
        case ["namespaces", _name, part] if part in _OF_NAMESPACES:
            pass
        case ["namespaces", namespace, *below] if below:
            steps = below
        case _:
            pass
    if not all(steps[:_STEPS]):
        return None
    plural, name, part = (*steps[:_STEPS], "", "")[:_STEPS]
    rest = "/".join(steps[_STEPS:])
    return ApiPath(
        group=group, version=version, plural=plural, namespace=namespace, name=name, part=part, rest=rest
    )
