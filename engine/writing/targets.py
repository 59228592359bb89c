"""One object by name: its topic, its key, and kubectl's name of its kind."""

from typing import Final

import msgspec
from msgspec import Struct, structs

from events import keys, shapes, topics
from events.validation import known_kinds as kinds

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
    """API version, kind, namespace and name of one object; the namespace is empty for cluster-scoped kinds.

    What follows from them is computed once: ``route`` is how the engine treats the kind, for example as a template, a
    policy or a cluster; ``key`` is the record key in the object's topic, which decides the partition; ``namespace_key``
    is the key of the namespace that the object is in.
    """

    api_version: str
    kind: str
    namespace: str
    name: str
    route: kinds.Route = "template"
    key: str = ""
    namespace_key: str = ""

    def __post_init__(self) -> None:
        route = kinds.route_of(self.api_version, self.kind)
        match route:
            case "template":
                key = keys.binding_key(self.kind, self.namespace, self.name)
            case "rebalancer":
                key = keys.rebalancer_key(self.name)
            case "cluster":
                key = self.name
            case _:
                key = keys.object_key(self.kind, self.namespace, self.name)
        structs.force_setattr(self, "route", route)
        structs.force_setattr(self, "key", key)
        structs.force_setattr(self, "namespace_key", keys.object_key("Namespace", "", self.namespace))

    @property
    def slot(self) -> tuple[str, int]:
        """The topic and the partition of the object's records."""
        topic = _TOPICS[self.route]
        return topic, keys.partition_of(self.key, topics.TOPICS[topic].partitions)

    @property
    def reference(self) -> shapes.WorkloadRef:
        return shapes.WorkloadRef(
            api_version=self.api_version, kind=self.kind, name=self.name, namespace=self.namespace
        )

    @property
    def resource(self) -> str:
        """The kind as kubectl prints it: ``deployment.apps``."""
        group, slash, _version = self.api_version.partition("/")
        return f"{self.kind.lower()}.{group}" if slash else self.kind.lower()
