"""The Deployment foo as an input, and what its partition keeps of it."""

from functools import partial

from events import codec, shapes
from events.records import Envelope
from events.validation import verdicts
from tests.builders import inputs
from tests.builders.log_records import Partition
from tests.builders.manifests import deployment

KEY = "default/foo-deployment"
FOO_MANIFEST = deployment("foo", 3, "default")
applied = partial(inputs.deployment, "foo")
FOO = shapes.WorkloadRef(api_version="apps/v1", kind="Deployment", name="foo", namespace="default")


def head_of(partition: Partition, key: str = KEY) -> verdicts.Head:
    return partition.fold.state.heads[key]


def content(data: shapes.Event) -> tuple[dict[str, str], bytes]:
    head = Envelope(id="1", source="/a", type=data.event_type.type)
    record = codec.encode(data, head, partition=0, key="")
    return dict(record.headers), record.value
