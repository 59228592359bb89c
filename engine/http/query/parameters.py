"""Parameters of the queries, with their limits. Unknown parameters are refused."""

from typing import Annotated, Final

from msgspec import Meta, Struct

from engine.http.errors import RefusalError
from engine.kubeapi.requests import label_selectors
from events import topics
from events.validation import known_kinds as kinds
from projections import query

_LIMIT: Final = Meta(ge=1, le=query.LIMIT_MAX, description="items per page")
_AS_OF: Final = (
    "some time ago (10m), a time (RFC 3339), a number of the log, or a position (topic/partition/offset)"
)
Limit = Annotated[int, _LIMIT]
Text = Annotated[str, Meta(max_length=1024)]
AsOf = Annotated[str, Meta(max_length=64, description=_AS_OF)]
Continue = Annotated[str, Meta(max_length=4096, description="value of continue in the previous page")]
Labels = Annotated[
    str, Meta(max_length=1024, description="conditions on labels: app=web,tier in (gold,silver),!old")
]
Topic = Annotated[str, Meta(extra_json_schema={"enum": ["", *topics.TOPICS]})]
"""A topic's name, empty for all topics; ``record_pages.check_topic`` refuses an unknown name and lists the topics."""

Number = Annotated[int, Meta(ge=0, le=2**62)]


def label_test(selector: str) -> query.LabelTest | None:
    """Return the predicate of a label selector; None selects everything. Raises RefusalError if it is invalid."""
    if not selector.strip():
        return None
    try:
        return label_selectors.labels(selector).matches
    except label_selectors.SelectorError as error:
        remedy = "write app=web, tier in (gold,silver), or !old"
        raise RefusalError(400, "labelSelector", str(error), remedy) from None


def kind_of(name: str) -> str:
    """Return the kind that a name means, such as Deployment for ``deploy``; an unknown name is returned unchanged."""
    known = kinds.find(name) if name else None
    return known.kind if known else name


class Query(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of the types of query strings; an unknown parameter is refused."""


class VerifyQuery(Query, frozen=True, kw_only=True):
    """Options of the verification: ``views`` also folds the log from scratch and compares the result with the views."""

    views: bool = False


class ObjectQuery(Query, frozen=True, kw_only=True):
    """Query for one object, now or as of an earlier point."""

    as_of: AsOf = ""


class PageQuery(ObjectQuery, frozen=True, kw_only=True):
    """Query for a page of objects."""

    limit: Limit = 100
    continue_: Continue = ""


class BindingsQuery(PageQuery, frozen=True, kw_only=True):
    """Query for bindings; ``cluster`` is an assigned cluster, the other filters select templates."""

    namespace: Text = ""
    cluster: Text = ""
    kind: Text = ""
    name: Text = ""
    label_selector: Labels = ""

    @property
    def filter(self) -> query.Filter:
        """The filter of the views; raises RefusalError if the label selector is invalid."""
        return query.Filter(
            kind=kind_of(self.kind),
            namespace=self.namespace,
            name=self.name,
            cluster=self.cluster,
            labels=label_test(self.label_selector),
        )


class ObjectsQuery(PageQuery, frozen=True, kw_only=True):
    """Query for objects; ``kind`` takes any of kubectl's names (``deploy``)."""

    kind: Text = ""
    api_version: Text = ""
    namespace: Text = ""
    name: Text = ""
    label_selector: Labels = ""


class ClustersQuery(PageQuery, frozen=True, kw_only=True):
    """Query for clusters."""

    label_selector: Labels = ""


class WorksQuery(PageQuery, frozen=True, kw_only=True):
    """Query for works; ``cluster`` and ``key`` (of the binding) filter them unless empty."""

    cluster: Text = ""
    key: Text = ""


class TimelineQuery(ObjectQuery, frozen=True, kw_only=True):
    """Query for the records that touched a key, after the number ``after``."""

    after: Number = 0
    limit: Limit = 100


class LogQuery(Query, frozen=True, kw_only=True):
    """Query for records after the number ``after``; ``topic``, ``key`` and ``plan`` filter them unless empty."""

    after: Number = 0
    limit: Limit = 100
    topic: Topic = ""
    key: Text = ""
    plan: Text = ""


class LiveQuery(Query, frozen=True, kw_only=True):
    """Query for the live feed after the number ``after``; without it, for records from now on."""

    after: Number | None = None
    topic: Topic = ""
    key: Text = ""
