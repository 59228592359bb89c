"""Stored form of Secrets: ``stringData`` is encoded into ``data`` and removed.

``stringData`` is write-only and takes precedence over ``data``. A manager of a key in ``stringData`` owns
that key in ``data``.
"""

import base64
from typing import Final

from engine.kubeapi.patching import managed_fields
from engine.kubeapi.patching.field_sets import Path
from events.json_values import as_object
from events.kube_objects import KubeObject

_TEXTS: Final = "stringData"
_DATA: Final = "data"
_OWNED_TEXTS: Final = f"f:{_TEXTS}"
_OWNED_DATA: Final = f"f:{_DATA}"


def kept(value: KubeObject) -> KubeObject:
    """Return the stored form of a Secret; a malformed one is unchanged, so that validation reports it."""
    document = value.document
    if _TEXTS not in document:
        return value
    texts, data = as_object(document[_TEXTS]), as_object(document.get(_DATA) or {})
    rest = KubeObject({name: item for name, item in document.items() if name != _TEXTS})
    if not document[_TEXTS]:
        return rest
    if texts is None or data is None or not all(isinstance(text, str) for text in texts.values()):
        return value
    encoded = {name: base64.b64encode(str(text).encode()).decode() for name, text in texts.items()}
    return managed_fields.renamed(rest.with_fields({_DATA: {**data, **encoded}}), _renamed)


def _renamed(path: Path) -> Path:
    return (_OWNED_DATA, *path[1:]) if path[0] == _OWNED_TEXTS else path
