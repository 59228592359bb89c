"""One object by name: its topic, its key, and what kubectl calls its kind."""

from typing import Final

import msgspec
from msgspec import Struct

from events import forms_kinds as kinds
from events import keys, shapes, topics

_TOPICS: Final[dict[kinds.Route, str]] = {
    "template": topics.SPECS,
    "rebalancer": topics.SPECS,
    "policy": topics.POLICIES,
    "namespace": topics.POLICIES,
    "interpreter": topics.POLICIES,
    "configuration": topics.POLICIES,
    "cluster": topics.CLUSTERS,
}
encode: Final = msgspec.json.Encoder(order="deterministic").encode


class Target(Struct, frozen=True, kw_only=True):
    """One object by name: where it stands in the log, and what kubectl calls it."""

    api_version: str
    kind: str
    namespace: str
    name: str

    @property
    def route(self) -> kinds.Route:
        """What the engine does with the kind."""
        return kinds.route_of(self.api_version, self.kind)

    @property
    def topic(self) -> str:
        """The topic that carries the object."""
        return _TOPICS[self.route]

    @property
    def key(self) -> str:
        """The key of the object in its topic."""
        match self.route:
            case "template":
                return keys.binding_key(self.kind, self.namespace, self.name)
            case "rebalancer":
                return keys.rebalancer_key(self.name)
            case "cluster":
                return self.name
            case _:
                return keys.object_key(self.kind, self.namespace, self.name)

    @property
    def reference(self) -> shapes.WorkloadRef:
        """Its name, as events have it."""
        return shapes.WorkloadRef(
            api_version=self.api_version, kind=self.kind, name=self.name, namespace=self.namespace
        )

    @property
    def resource(self) -> str:
        """The kind as kubectl prints it: ``deployment.apps``."""
        group, slash, _version = self.api_version.partition("/")
        return f"{self.kind.lower()}.{group}" if slash else self.kind.lower()
