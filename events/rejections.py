"""Topic ``rejections``: inputs that were refused, whole."""

from events import shapes


class InputRejected(shapes.Event, frozen=True, kw_only=True):
    """An input that has no effect, with the field and the reason.

    ``verdict`` is late, repeated, misplaced or refused; the position names the input in its log. An input that
    was refused at the door never got a position; then ``content`` is what was sent, cut at 4 KiB.
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
