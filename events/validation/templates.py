"""Validation of the template fields that the engine reads: replicas and resource requests of built-in kinds.

All other fields of a template are accepted unchanged; the member clusters' API servers validate them.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from events import imported_placements, limits
from events.validation import names
from events.validation.schema import Fault

_Count = Annotated[int, Meta(ge=0, le=limits.REPLICAS_MAX)]
_Quantity = str | int | float


class _Resources(Struct, frozen=True):
    requests: dict[str, _Quantity] = {}
    limits: dict[str, _Quantity] = {}


class _Container(Struct, frozen=True):
    resources: _Resources = _Resources()


class _PodSpec(Struct, frozen=True, rename="camel"):
    containers: tuple[_Container, ...] = ()
    init_containers: tuple[_Container, ...] = ()
    overhead: dict[str, _Quantity] = {}


class _PodTemplate(Struct, frozen=True):
    spec: _PodSpec = _PodSpec()


class _Spec(Struct, frozen=True):
    replicas: _Count | None = None
    parallelism: _Count | None = None
    template: _PodTemplate = _PodTemplate()


class _Workload(Struct, frozen=True):
    spec: _Spec = _Spec()


_WORKLOAD: Final = msgspec.json.Decoder(_Workload)
_SIZED: Final = frozenset(
    {
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "ReplicaSet"),
        ("batch/v1", "Job"),
    }
)
_AT: Final = re.compile(r"(.*) - at `(?:key in )?\$\.?(.*)`", re.DOTALL)

_WORDS: Final = {
    "int": "a whole number",
    "float": "a fraction",
    "str": "text",
    "bool": "true or false",
    "null": "nothing",
    "array": "a list",
    "object": "an object",
}
_TYPE: Final = re.compile(rf"`({'|'.join(_WORDS)})(?: \| null)?`")
"""JSON types in msgspec's error messages; ``_WORDS`` has the words that users see instead."""


def template_faults(api_version: str, kind: str, raw: msgspec.Raw) -> Iterator[Fault]:
    """Yield the faults in the fields that the engine reads of a template of a built-in kind."""
    if (api_version, kind) not in _SIZED:
        return
    try:
        pod = _WORKLOAD.decode(raw).spec.template.spec
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        yield _fault("nested too deeply" if isinstance(error, RecursionError) else str(error))
        return
    path = "spec.template.spec"
    for name, containers in (("containers", pod.containers), ("initContainers", pod.init_containers)):
        for index, container in enumerate(containers):
            where = f"{path}.{name}[{index}].resources"
            yield from _quantities(container.resources.requests, f"{where}.requests")
            yield from _quantities(container.resources.limits, f"{where}.limits")
    yield from _quantities(pod.overhead, f"{path}.overhead")


def import_faults(
    annotations: Mapping[str, str], placement_faults: Callable[[object], Iterator[Fault]]
) -> Iterator[Fault]:
    """Yield the fault in the placement that a template brings along; ``placement_faults`` finds those of a policy's."""
    if imported_placements.ANNOTATION not in annotations:
        return
    path = f"metadata.annotations[{imported_placements.ANNOTATION}]"
    try:
        imported = imported_placements.read(annotations)
        placement: object = (
            msgspec.json.decode(imported.placement) if imported and imported.placement else None
        )
    except (msgspec.MsgspecError, RecursionError) as error:
        example = '{"clusters": {"member1": 2}}'
        yield Fault(path, f"is no placement: {error}", f"write such as {example}")
        return
    for fault in () if placement is None else placement_faults(placement):
        yield Fault(path, f"has a faulty placement: {fault.field}: {fault.reason}", fault.remedy)


def _quantities(wanted: Mapping[str, _Quantity], path: str) -> Iterator[Fault]:
    for resource, value in wanted.items():
        text = str(value)
        if text.startswith("-") or not names.is_quantity(text):
            reason = f"{text[:80]!r} is not a quantity from 0 on"
            yield Fault(f"{path}.{resource[:80]}", reason, "write such as 250m, 2, 512Mi or 1.5Gi")


def _fault(message: str) -> Fault:
    found = _AT.fullmatch(message)
    reason, field = (found.group(1), found.group(2)) if found else (message, "spec")
    reason = _TYPE.sub(lambda found: _WORDS[found.group(1)], reason)
    return Fault(field.replace("[...]", "[]"), reason[:1].lower() + reason[1:])
