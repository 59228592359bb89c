"""Records in Kafka's form: keys and headers in UTF-8, values unchanged."""

from aiokafka import ConsumerRecord

from events import records
from events.records import Record, StoredRecord

Headers = list[tuple[str, bytes]]


def headers(record: Record) -> Headers:
    return [(name, value.encode()) for name, value in record.headers.items()]


def stored(message: "ConsumerRecord[bytes, bytes]", topic: str) -> StoredRecord:
    """Return the record of a Kafka message, without a number.

    Invalid UTF-8 is replaced. If several headers have the same name, the last one is used.
    """
    key = _text(message.key or b"")
    headers = {name: _text(value or b"") for name, value in message.headers}
    value = message.value or b""
    blob = records.headers_json(headers)
    return StoredRecord(
        topic,
        message.partition,
        message.offset,
        0,
        key,
        headers,
        value,
        records.checksum(topic, message.partition, key, blob, value),
    )


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
