"""Topic ``rejections``: inputs that were refused."""

from events import shapes, topics


@shapes.recorded("input-rejected", topics.REJECTIONS)
class InputRejected(shapes.Event, frozen=True, kw_only=True):
    """An input without effect, with the field and the reason.

    ``verdict`` is late, repeated, misplaced or refused. Topic, partition and offset locate the input in the
    log. An input that the write API refused has no position; then ``content`` is the request's body, cut at 4
    KiB.
    """

    verdict: str
    reason: str
    field: str = ""
    topic: str = ""
    partition: shapes.Count = 0
    offset: shapes.Whole = -1
    key: str = ""
    source: str = ""
    event_id: str = ""
    content: str = ""
