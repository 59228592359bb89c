"""Values that many bindings have are kept once: bindings take most of the memory of a shard."""

from collections.abc import Hashable
from functools import lru_cache
from sys import intern
from typing import Final, TypeVar

from msgspec import structs

from engine.deciders.state import Binding, Declared, Template

_Value = TypeVar("_Value", bound=Hashable)

NOTHING: Final[dict[str, str]] = {}
"""For fields without entries; dictionaries in frozen structs are never changed."""

_KEPT_MAX: Final = 16_384


def shared(value: _Value) -> _Value:
    """Return an equal value that was shared before, if it is among the last used ones; else this one."""
    return _shared(value)  # pyright: ignore[reportReturnType]  # the cache forgets the type


@lru_cache(_KEPT_MAX)
def _shared(value: Hashable) -> Hashable:
    return value


def compact(binding: Binding) -> None:
    """Replace a binding's values by equal ones of other bindings, or of its template."""
    if binding.claim is not None:
        binding.claim = shared(binding.claim)
    if binding.applied:
        binding.applied = intern(binding.applied)
    binding.clusters = tuple(shared(target) for target in binding.clusters)
    template = binding.template
    if template is not None and (size := shared(template.size)) is not template.size:
        template = binding.template = structs.replace(template, size=size)
    if binding.declared is not None and template is not None:
        binding.declared = _like(binding.declared, template)


def _like(declared: Declared, template: Template) -> Declared:
    """Return a declaration with the template's own values where they are equal."""
    if declared.ref is template.ref:
        return declared
    return structs.replace(
        declared,
        ref=template.ref if declared.ref == template.ref else declared.ref,
        uid=template.uid if declared.uid == template.uid else declared.uid,
        digest=template.digest if declared.digest == template.digest else declared.digest,
        requests=template.size.requests if declared.requests == template.size.requests else declared.requests,
    )
