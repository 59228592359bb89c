"""Documents of Kubernetes objects within values that a test encodes."""

from events.json_values import Json
from events.kube_objects import KubeObject


def document_of(value: KubeObject) -> Json:
    """Return the document of an object: the ``enc_hook`` of an encoder of values that contain some."""
    return value.document
