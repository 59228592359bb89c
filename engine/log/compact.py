"""Compression of headers and manifests in the embedded log: frequent phrases become one control byte each.

JSON contains no control characters, so the original bytes can always be restored. Headers without any of the
phrases are stored unchanged, as are all headers in logs of format 1. The headers of a batch are joined and
packed together, in a third of the time that packing record by record would take.
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
"""Frequent phrases and their control bytes. They are part of the file format: a change needs a new log format."""

_PACKED_VALUE: Final = b"\x08"
"""Prefix of the headers of a record whose value is packed too."""

_SMALLEST: Final = 768
"""Minimum size in bytes of a packed value; packing a smaller one saves little."""

_LARGEST: Final = 16_384
"""Maximum size in bytes of a packed value; packing a larger one would take the writer too long."""

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
"""One byte per phrase, without white space characters, since manifests may contain line breaks."""

_MANIFESTS: Final = tuple(zip(_MANIFEST_PHRASES, (bytes((byte,)) for byte in _MANIFEST_BYTES), strict=True))


def pack(headers: Iterable[bytes]) -> list[bytes]:
    """Pack the headers of records, each given as JSON; there must be at least one."""
    joined = _SEPARATOR.join(headers)
    for phrase, byte in _HEADERS:
        joined = joined.replace(phrase, byte)
    return joined.split(_SEPARATOR)


def unpack(stored: Sequence[bytes]) -> list[bytes]:
    """Return the headers' JSON of each stored entry; from damaged bytes, headers that do not match their checksum.

    Headers keep the prefix ``_PACKED_VALUE``; ``unpack_value`` removes it.
    """
    joined = _SEPARATOR.join(stored)
    for phrase, byte in reversed(_HEADERS):
        joined = joined.replace(byte, phrase)
    headers = joined.split(_SEPARATOR)
    # Only damaged headers contain the separator, so the counts differ; their checksums then reveal the damage.
    return headers if len(headers) == len(stored) else list(stored)


def pack_value(headers: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Return packed headers and value for storage.

    The value is packed if it has a suitable size and no control bytes.
    """
    if not _SMALLEST <= len(value) <= _LARGEST or len(value.translate(None, _MANIFEST_BYTES)) != len(value):
        return headers, value
    for phrase, byte in _MANIFESTS:
        value = value.replace(phrase, byte)
    return _PACKED_VALUE + headers, value


def unpack_value(headers: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Return the headers' JSON and the value from the result of ``unpack`` and the stored value."""
    if not headers.startswith(_PACKED_VALUE):
        return headers, value
    for phrase, byte in reversed(_MANIFESTS):
        value = value.replace(byte, phrase)
    return headers[len(_PACKED_VALUE) :], value
