"""Objects of the observed control plane that are too large for a record."""

import msgspec

from engine.cli.karmada import states
from engine.log.local import MemoryLog
from engine.observer import observation
from engine.observer.observation import Observation, Observations
from events import codec, limits, observations
from events.kube_objects import KubeObject
from events.records import Record


def config_map(name: str, size: int) -> KubeObject:
    """Return a ConfigMap whose data has ``size`` control characters, each of which takes six bytes in JSON."""
    return KubeObject(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "shop", "uid": name, "resourceVersion": "7"},
            "data": {"text": "\1" * size},
        }
    )


LARGE = config_map("large", limits.RECORD_BYTES_MAX // 6)


def record_of(value: KubeObject) -> Record:
    seen = Observations().changed(value, is_gone=False)
    assert seen is not None
    return observation.record(seen, "7", "/observed/karmada", 0)


def observed(record: Record) -> Observation:
    decoded = codec.decode(record)
    assert isinstance(decoded, codec.Decoded), decoded
    assert isinstance(decoded.data, Observation)
    return decoded.data


def test_only_the_identity_of_a_large_object_is_recorded() -> None:
    seen = observed(record_of(LARGE))
    assert isinstance(seen, observations.ObjectObserved)
    recorded = msgspec.json.decode(seen.manifest)
    note = recorded["metadata"].pop("annotations")
    assert list(note) == [observation.OMITTED]
    assert recorded == {name: LARGE.document[name] for name in ("apiVersion", "kind", "metadata")}


def test_large_object_is_known_after_a_restart() -> None:
    restarted = Observations()
    restarted.restore(observed(record_of(LARGE)))
    assert list(restarted.listed("", "ConfigMap", [LARGE])) == []


async def test_copy_names_large_objects_and_leaves_them_out() -> None:
    log, small = MemoryLog(), config_map("small", 1)
    await log.append([record_of(LARGE), record_of(small)])
    state = await states.of_log(log)
    assert state is not None
    assert "large" not in [value.name for value in state.objects]
    assert any("ConfigMap shop/large" in note for note in state.notes)
