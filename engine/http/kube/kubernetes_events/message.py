"""The text of a Kubernetes Event, and the object that it is about."""

from typing import Final, NamedTuple

from msgspec import Struct

from events.json_values import Json

NORMAL: Final = "Normal"
WARNING: Final = "Warning"


class Message(Struct, frozen=True, kw_only=True):
    """Reason, message and reporter of an Event; the reporter is the controller of Karmada that reports it."""

    reason: str
    message: str
    reporter: str
    type: str = NORMAL


class ObjectReference(Struct, frozen=True):
    """The reference of an Event to its object; the namespace is empty for cluster-scoped kinds."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    def plain(self) -> Json:
        """Return the reference as JSON."""
        head: Json = {"apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid}
        return {**head, "namespace": self.namespace} if self.namespace else head


class ObjectMessage(NamedTuple):
    """A message with the object that it is about; ``involved`` is the reference to the object."""

    message: Message
    involved: ObjectReference
