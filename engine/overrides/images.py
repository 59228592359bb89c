"""Container image names: parse, modify and format them as Karmada does.

``[registry/]repository[:tag][@digest]``. The part before the first slash is the registry if it contains a dot
or a colon or is ``localhost``. Unlike in Karmada 1.18, an image keeps its tag and its digest if its registry
or repository changes: without the digest, the cluster could run another image.
"""

import re
from typing import Final

from msgspec import Struct

from events.limits import quoted

NAME_CHARS_MAX: Final = 255
_CHARS_MAX: Final = 1_024
"""Longer texts are refused without parsing."""

_DOMAIN_PART: Final = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN: Final = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH_PART: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_TAG: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST: Final = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_IMAGE: Final = re.compile(
    rf"(?P<name>(?:{_DOMAIN}/)?{_PATH_PART}(?:/{_PATH_PART})*)(?::(?P<tag>{_TAG}))?(?:@(?P<digest>{_DIGEST}))?"
)
_ONLY_TAG: Final = re.compile(_TAG)
_ONLY_DIGEST: Final = re.compile(_DIGEST)


class ImageError(ValueError):
    """A text that is not an image name."""


class Image(Struct, frozen=True, kw_only=True):
    """Parts of an image name, empty if absent."""

    registry: str = ""
    repository: str = ""
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        name = f"{self.registry}/{self.repository}" if self.registry else self.repository
        tagged = f"{name}:{self.tag}" if self.tag else name
        return f"{tagged}@{self.digest}" if self.digest else tagged


def parse(text: str) -> Image:
    """Parse an image name; raises ImageError."""
    match = _IMAGE.fullmatch(text) if len(text) <= _CHARS_MAX else None
    if match is None or len(match["name"]) > NAME_CHARS_MAX:
        raise ImageError(f"{quoted(text)} is not an image name")
    registry, slash, repository = match["name"].partition("/")
    if not slash or not ("." in registry or ":" in registry or registry == "localhost"):
        registry, repository = "", match["name"]
    return Image(
        registry=registry, repository=repository, tag=match["tag"] or "", digest=match["digest"] or ""
    )


def changed(image: Image, component: str, operator: str, value: str) -> Image:
    """Return the image with one component (Registry, Repository or Tag) changed by an operator.

    The operator ``add`` appends the value. The component Tag is the tag or, without one, the digest; the result has
    only one of them. If a new tag is neither a valid tag nor a valid digest, the image is unchanged.
    """
    match component:
        case "Registry":
            registry = _text(image.registry, operator, value)
            return Image(registry=registry, repository=image.repository, tag=image.tag, digest=image.digest)
        case "Repository":
            repository = _text(image.repository, operator, value)
            return Image(registry=image.registry, repository=repository, tag=image.tag, digest=image.digest)
        case _:
            text = _text(image.tag or image.digest, operator, value)
            untagged = Image(registry=image.registry, repository=image.repository)
            if not text and operator == "remove":
                return untagged
            if _ONLY_TAG.fullmatch(text):
                return Image(registry=image.registry, repository=image.repository, tag=text)
            if _ONLY_DIGEST.fullmatch(text):
                return Image(registry=image.registry, repository=image.repository, digest=text)
            return image


def _text(old: str, operator: str, value: str) -> str:
    match operator:
        case "add":
            return old + value
        case "replace":
            return value
        case _:
            return ""
