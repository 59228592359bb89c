"""Golden files: records as they were written, in JSON."""

from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from events import codec, records
from tests.golden.samples import table

DIRECTORY: Final = Path(__file__).parent / "records"


class Golden(Struct, frozen=True, kw_only=True):
    """A record; ``value`` is the text of its bytes, ``checksum`` in hex."""

    topic: str
    partition: int
    key: str
    headers: dict[str, str]
    value: str
    checksum: str


def path_of(event_type: str) -> Path:
    return DIRECTORY / f"{event_type}.json"


def load(path: Path) -> Golden:
    """Return a golden record; fails with the command that writes it if it is missing."""
    assert path.exists(), f"no golden file {path.name}; add a sample, then run `python -m tests.golden.add`"
    return msgspec.json.decode(path.read_bytes(), type=Golden)


def record_of(golden: Golden) -> records.Record:
    return records.record(golden.topic, golden.partition, golden.key, golden.headers, golden.value.encode())


def write(event_type: str) -> Path:
    """Write the sample of a type in its present encoding; raises FileExistsError if the file exists."""
    data = table.SAMPLES[event_type]
    key, partition = table.place_of(data)
    record = codec.encode(data, table.envelope_of(event_type), partition=partition, key=key)
    golden = Golden(
        topic=record.topic,
        partition=record.partition,
        key=record.key,
        headers=dict(record.headers),
        value=record.value.decode(),
        checksum=record.checksum.hex(),
    )
    path = path_of(event_type)
    with path.open("xb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(golden), indent=2) + b"\n")
    return path
