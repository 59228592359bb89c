"""Topic ``works``: what one cluster must run now.

A work names the template by position and digest, with only what differs in this cluster. Its version is
(term, step) of the deciding shard: agents keep the newest one of each binding.
"""

from events import shapes


class WorkApplied(shapes.Event, frozen=True, kw_only=True):
    """The cluster must run this; ``replicas`` absent means that the kind has none.

    The template gets the replicas first, then the ``labels``, which preserve the state of what ran elsewhere before,
    then what ``overrides`` say, in their order. ``reading`` says how its status is read, beyond what is
    known of its kind.
    """

    cluster: str
    key: str
    template: shapes.WorkloadRef
    shard: shapes.Count
    offset: shapes.Count
    digest: str
    term: shapes.Count
    step: shapes.Count
    replicas: shapes.Count | None = None
    overrides: tuple[shapes.OverrideRef, ...] = ()
    labels: dict[str, str] = {}
    reading: shapes.Reading | None = None


class WorkRemoved(shapes.Event, frozen=True, kw_only=True):
    """The cluster must not run this any more; ``preserved`` leaves what runs there to the cluster."""

    cluster: str
    key: str
    term: shapes.Count
    step: shapes.Count
    preserved: bool = False


class WorkSuspended(shapes.Event, frozen=True, kw_only=True):
    """What the cluster runs stays as it is until a new work says otherwise."""

    cluster: str
    key: str
    term: shapes.Count
    step: shapes.Count
