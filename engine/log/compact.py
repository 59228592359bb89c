"""Headers and manifests as the table of the embedded log stores them: one byte for each phrase that records repeat.

JSON has no control characters, so these stand for the phrases, and everything comes back as it was, byte for byte.
Headers without one of the phrases stay what they are; so do those of logs of format 1, which are all plain JSON.
The headers of a batch are replaced at once, since this costs a third of what it costs record by record.
"""

from collections.abc import Iterable, Sequence
from typing import Final

_SEPARATOR: Final = b"\0"
_HEADERS: Final = (
    (b'{"ce_specversion":"1.0","ce_id":"', b"\x01"),
    (b'","ce_source":"/reballast/', b"\x02"),
    (b'","ce_type":"io.reballast.', b"\x03"),
    (b'.v1","ce_subject":"', b"\x04"),
    (b'","ce_time":"20', b"\x05"),
    (b'Z","ce_correlationid":"', b"\x06"),
    (b'","ce_causationid":"', b"\x07"),
)
"""These tables are in the files: what is changed needs a new format of the log."""

_PACKED_VALUE: Final = b"\x08"
"""Before the headers of a record whose value is packed too."""

_SMALLEST: Final = 768
_LARGEST: Final = 16_384
"""Bytes of values that are packed: smaller ones gain little, and larger ones take the writer too long."""

_MANIFEST_PHRASES: Final = (
    b'"f:progressDeadlineSeconds":{},"f:replicas":{},"f:revisionHistoryLimit":{},"f:selector":{},',
    b'"f:strategy":{"f:rollingUpdate":{".":{},"f:maxSurge":{},"f:maxUnavailable":{}},"f:type":{}},',
    b'"f:template":{"f:metadata":{"f:labels":{".":{},',
    b'"f:spec":{"f:containers":{"k:{\\"name\\":\\"',
    b'":{".":{},"f:image":{},"f:imagePullPolicy":{},"f:name":{}',
    b'"f:resources":{".":{},"f:',
    b'"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}',
    b'"f:dnsPolicy":{},"f:restartPolicy":{},"f:schedulerName":{},',
    b'"f:securityContext":{},"f:terminationGracePeriodSeconds":{}',
    b'"revisionHistoryLimit":10,"selector":{"matchLabels":{',
    b'"strategy":{"rollingUpdate":{"maxSurge":"25%","maxUnavailable":"25%"},"type":"RollingUpdate"},',
    b'"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"',
    b'"dnsPolicy":"ClusterFirst",',
    b'"restartPolicy":"Always","schedulerName":"default-scheduler",',
    b'"securityContext":{},"terminationGracePeriodSeconds":30',
    b'"fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{',
    b'"operation":"Update","time":"20',
    b'{"manifest":{"apiVersion":"',
)
_MANIFEST_BYTES: Final = bytes(range(1, 1 + len(_MANIFEST_PHRASES) + 3)).translate(None, b"\t\n\r")
"""A byte for each of these; manifests may be written over several lines, so white space is none of them."""

_MANIFESTS: Final = tuple(zip(_MANIFEST_PHRASES, (bytes((byte,)) for byte in _MANIFEST_BYTES), strict=True))


def pack(headers: Iterable[bytes]) -> list[bytes]:
    """The form to store of some headers' JSON; of one at least."""
    joined = _SEPARATOR.join(headers)
    for phrase, byte in _HEADERS:
        joined = joined.replace(phrase, byte)
    return joined.split(_SEPARATOR)


def unpack(stored: Sequence[bytes]) -> list[bytes]:
    """The headers' JSON, as many as were given; from damaged bytes come headers that no checksum matches.

    The mark of a packed value stays before it; see ``unpack_value``.
    """
    joined = _SEPARATOR.join(stored)
    for phrase, byte in reversed(_HEADERS):
        joined = joined.replace(byte, phrase)
    headers = joined.split(_SEPARATOR)
    # Only damage brings a zero byte into headers.
    return headers if len(headers) == len(stored) else list(stored)


def pack_value(headers: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Packed headers and a value as they are stored: the value packed too where that is worth it, and can be undone."""
    if not _SMALLEST <= len(value) <= _LARGEST or len(value.translate(None, _MANIFEST_BYTES)) != len(value):
        return headers, value
    for phrase, byte in _MANIFESTS:
        value = value.replace(phrase, byte)
    return _PACKED_VALUE + headers, value


def unpack_value(headers: bytes, value: bytes) -> tuple[bytes, bytes]:
    """The headers' JSON and the value, of what ``unpack`` gave and what is stored."""
    if not headers.startswith(_PACKED_VALUE):
        return headers, value
    for phrase, byte in reversed(_MANIFESTS):
        value = value.replace(byte, phrase)
    return headers[len(_PACKED_VALUE) :], value
