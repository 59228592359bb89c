"""The text of a Kubernetes Event, and the object that it is about."""

from typing import Final, NamedTuple, TypedDict

from msgspec import Struct

NORMAL: Final = "Normal"
WARNING: Final = "Warning"


class Message(Struct, frozen=True, kw_only=True):
    """Reason, message, type and reporter of an Event; the reporter is the controller that reports it in Karmada."""

    reason: str
    message: str
    reporter: str
    type: str = NORMAL


class _Reference(TypedDict, total=False):
    apiVersion: str
    kind: str
    name: str
    uid: str
    namespace: str


class ObjectReference(Struct, frozen=True):
    """The reference to the object that an Event is about; the namespace is empty for cluster-scoped kinds."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    def plain(self) -> _Reference:
        """Return the reference as JSON."""
        reference: _Reference = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
        }
        if self.namespace:
            reference["namespace"] = self.namespace
        return reference


class ObjectMessage(NamedTuple):
    """A message with the object that it is about; ``involved`` is the reference to the object."""

    message: Message
    involved: ObjectReference
