"""Topic ``policies``: the objects that every shard reads."""

import msgspec

from events import shapes


class PolicyApplied(shapes.Event):
    """A PropagationPolicy or ClusterPropagationPolicy as it is wanted now: the whole object."""

    manifest: msgspec.Raw
    expects: int | None = None


class PolicyDeleted(shapes.Event):
    """A policy that is gone; what it placed keeps running."""

    policy: shapes.PolicyRef
    expects: int | None = None


class NamespaceApplied(shapes.Event):
    """A Namespace of the control plane: the whole object."""

    manifest: msgspec.Raw
    expects: int | None = None


class NamespaceDeleted(shapes.Event):
    """A Namespace that is gone."""

    name: str
    expects: int | None = None


class InterpreterApplied(shapes.Event):
    """How a custom kind is read: a ReplicaInterpreter object (``config.reballast.io/v1alpha1``)."""

    manifest: msgspec.Raw
    expects: int | None = None


class InterpreterDeleted(shapes.Event):
    """An interpreter that is gone; the kind is read as one without replicas."""

    name: str
    expects: int | None = None
