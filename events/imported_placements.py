"""The placement of a template in the control plane from which it was imported, as an annotation."""

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec
from msgspec import Struct

from events import shapes

ANNOTATION: Final = "reballast.io/imported-placement"
"""Annotation of templates; its value is an ``ImportedPlacement`` as JSON."""

_Replicas = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class ImportedPlacement(Struct, frozen=True, gc=False, omit_defaults=True):
    """Replicas by cluster (0 for kinds without replicas), and the name of the affinity group in use.

    ``policy`` is the one that claims the template. If it is lazy, ``placement`` (JSON) is the version of its
    placement that the template still uses; the policy may have a newer one.
    """

    clusters: dict[str, _Replicas]
    affinity: str = ""
    policy: shapes.PolicyRef | None = None
    placement: str = ""


_PLACEMENT: Final = msgspec.json.Decoder(ImportedPlacement)


def read(annotations: Mapping[str, str]) -> ImportedPlacement | None:
    """Return the placement; None if there is none. Raises `msgspec.MsgspecError` if it is malformed."""
    text = annotations.get(ANNOTATION)
    return None if text is None else _PLACEMENT.decode(text)
