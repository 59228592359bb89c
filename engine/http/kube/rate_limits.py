"""Rate limits per user: requests per second, concurrent watches, and changes that wait for a watch.

Members of ``system:masters`` are exempt from the request rate and the number of watches.
"""

from msgspec import Struct


class Limits(Struct, frozen=True, kw_only=True):
    """Limits per user and per watch.

    A user may send ``burst`` requests at once and ``requests_per_second`` on average, and hold ``watches``
    watches. A watch is ended when ``queue`` changes wait for its client, or one has waited for
    ``queue_seconds``.
    """

    requests_per_second: float = 400.0
    burst: int = 800
    watches: int = 256
    queue: int = 8_192
    queue_seconds: float = 15.0
