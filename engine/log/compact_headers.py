"""Headers as the table of the embedded log stores them: their JSON, with one byte for each phrase that records repeat.

JSON has no control characters, so these stand for the phrases, and any headers come back as they were, byte for byte.
Headers without one of the phrases stay what they are; so do those of logs of format 1, which are all plain JSON.
Whole batches are replaced at once, since this costs a third of what it costs record by record.
"""

from collections.abc import Iterable, Sequence
from typing import Final

_SEPARATOR: Final = b"\0"
_PHRASES: Final = (
    (b'{"ce_specversion":"1.0","ce_id":"', b"\x01"),
    (b'","ce_source":"/reballast/', b"\x02"),
    (b'","ce_type":"io.reballast.', b"\x03"),
    (b'.v1","ce_subject":"', b"\x04"),
    (b'","ce_time":"20', b"\x05"),
    (b'Z","ce_correlationid":"', b"\x06"),
    (b'","ce_causationid":"', b"\x07"),
)
"""They are in the files: what is added goes to the end, with a byte of its own, and a new format of the log."""


def pack(headers: Iterable[bytes]) -> list[bytes]:
    """The form to store of some headers' JSON; of one at least."""
    joined = _SEPARATOR.join(headers)
    for phrase, byte in _PHRASES:
        joined = joined.replace(phrase, byte)
    return joined.split(_SEPARATOR)


def unpack(stored: Sequence[bytes]) -> list[bytes]:
    """The headers' JSON, as many as were given; from damaged bytes come headers that no checksum matches."""
    joined = _SEPARATOR.join(stored)
    for phrase, byte in reversed(_PHRASES):
        joined = joined.replace(byte, phrase)
    headers = joined.split(_SEPARATOR)
    # Only damage brings a zero byte into headers.
    return headers if len(headers) == len(stored) else list(stored)
