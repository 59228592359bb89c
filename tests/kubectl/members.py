"""Kubectl on a member, in the namespace of the test."""

from typing import Final

from events.json_values import object_at, objects_at
from tests.kubectl.commands import Kubectl


def in_namespace(kubectl: Kubectl, name: str = "member1") -> Kubectl:
    """A member with the namespace of the test."""
    member = kubectl.on(name)
    if not member("get", "namespace", kubectl.namespace, "--ignore-not-found"):
        member("create", "namespace", kubectl.namespace)
    return member


def uids(member: Kubectl, kind: str = "pods") -> dict[str, object]:
    """Uids of the pods, or of the objects of a kind, by name."""
    metadata = [object_at(item, "metadata") for item in objects_at(member.json(kind), "items")]
    return {str(fields["name"]): fields["uid"] for fields in metadata}


MEMBERS: Final = ("member1", "member2", "member3")


def until_idle(kubectl: Kubectl) -> None:
    """Wait until the members run no pods but their own: workloads of earlier tests leave in the background.

    Until then they take capacity, by which replicas are divided.
    """
    for member in MEMBERS:
        kubectl.on(member).until([], "pods", "-A", "--field-selector", "metadata.namespace!=kube-system")
