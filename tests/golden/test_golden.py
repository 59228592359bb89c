"""Every record ever written is readable, with unchanged content."""

import json
from pathlib import Path

import msgspec
import pytest

from events import catalogue, codec, topics
from tests.golden import files
from tests.golden.samples import table

PATHS = sorted(files.DIRECTORY.glob("*.json"))
COMMAND = "python -m tests.golden.add"


@pytest.mark.parametrize("event_type", catalogue.BY_TYPE)
def test_each_event_type_has_a_golden_file(event_type: str) -> None:
    assert event_type in table.SAMPLES, f"add a sample of {event_type} to tests/golden/samples/"
    assert files.path_of(event_type) in PATHS, f"no golden file of {event_type}; run `{COMMAND}`"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_golden_record_is_decoded(path: Path) -> None:
    golden = files.load(path)
    record = files.record_of(golden)
    decoded = codec.decode(record)

    assert isinstance(decoded, codec.Decoded)
    assert record.checksum.hex() == golden.checksum
    assert decoded.envelope.type == path.stem
    assert decoded.data.event_type.topic == golden.topic
    if path.stem not in codec.UPCASTERS:
        # Encoding it again loses nothing and adds no fields of later releases.
        assert codec.encode_data(decoded.data).decode() == golden.value


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_golden_record_of_the_newest_version_has_each_field(path: Path) -> None:
    entry = catalogue.BY_TYPE.get(path.stem)
    if entry is None:
        assert path.stem in codec.UPCASTERS
        return
    written = json.loads(files.load(path).value)
    # Fields that were added after the file was written have defaults, and may be absent.
    required = {field.encode_name for field in msgspec.structs.fields(entry.struct) if field.required}
    assert required <= written.keys() <= set(entry.struct.__struct_encode_fields__)


@pytest.mark.parametrize(("event_type", "data"), table.SAMPLES.items())
def test_each_sample_has_a_value_in_every_field(event_type: str, data: msgspec.Struct) -> None:
    absent = set(type(data).__struct_encode_fields__) - json.loads(msgspec.json.encode(data)).keys()
    assert not absent, f"{event_type}: give {sorted(absent)} a value that is not the default"


def test_golden_files_are_never_rewritten() -> None:
    with pytest.raises(FileExistsError):
        files.write(PATHS[0].stem)


def test_every_topic_has_a_golden_record() -> None:
    assert {files.load(path).topic for path in PATHS} == set(topics.TOPICS)


def test_every_superseded_version_leads_to_a_known_one() -> None:
    for old, (new, _) in codec.UPCASTERS.items():
        assert old not in catalogue.BY_TYPE
        assert new in catalogue.BY_TYPE or new in codec.UPCASTERS
        assert files.path_of(old) in PATHS, f"the golden file of {old} is gone; restore it"
