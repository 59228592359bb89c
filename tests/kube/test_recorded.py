"""Server-side apply and strategic merge patches give the results of Kubernetes' libraries (``vectors/README.md``)."""

import gzip
from pathlib import Path

import msgspec
import pytest
from msgspec import Struct

from engine.kubeapi.patching import managed_fields, server_side_apply, strategic_merge
from engine.kubeapi.schema.types import parsing
from events.json_values import Json
from events.kube_objects import KubeObject
from tests.builders.manifests import manifest

VECTORS = Path(__file__).parent / "vectors"
DEPLOYMENT = parsing.named("apps.Deployment")


class Step(Struct, frozen=True):
    operation: str
    manager: str
    force: bool
    object: Json
    result: Json | None = None
    conflict: str = ""


class Merge(Struct, frozen=True):
    live: Json
    patch: Json
    result: Json


def _lines(name: str) -> list[bytes]:
    return gzip.decompress((VECTORS / name).read_bytes()).splitlines()


STORIES = [msgspec.json.decode(line, type=list[Step]) for line in _lines("apply.jsonl.gz")]
MERGES = [msgspec.json.decode(line, type=Merge) for line in _lines("strategic-merge.jsonl.gz")]


def _write(live: KubeObject, step: Step) -> KubeObject:
    manager = managed_fields.Manager(
        name=step.manager, operation="Apply" if step.operation == "apply" else "Update"
    )
    write = server_side_apply.Write(manager=manager, api_version="apps/v1", time="")
    new = KubeObject(step.object)
    if step.operation == "apply":
        return server_side_apply.applied(live, new, DEPLOYMENT, write, force=step.force)
    return server_side_apply.updated(live, new, DEPLOYMENT, write)


def _by_manager(value: KubeObject) -> KubeObject:
    """Sort the entries: a recording without times has no order within a second."""
    entries = managed_fields.entries(value)
    entries.sort(key=lambda entry: (str(entry["operation"]), str(entry["manager"])))
    return managed_fields.replaced(value, entries)


@pytest.mark.parametrize("story", STORIES, ids=range(len(STORIES)))
def test_writes_of_several_managers_equal_the_recorded_ones(story: list[Step]) -> None:
    live = KubeObject(manifest("apps/v1", "Deployment", "web", "shop"))
    for step in story:
        if step.result is None:
            with pytest.raises(server_side_apply.ApplyConflictError) as caught:
                _write(live, step)
            assert str(caught.value) == step.conflict
        else:
            live = _write(live, step)
            assert _by_manager(live) == _by_manager(KubeObject(step.result))


@pytest.mark.parametrize("merge", MERGES, ids=range(len(MERGES)))
def test_patches_of_kubectl_apply_equal_the_recorded_ones(merge: Merge) -> None:
    assert strategic_merge.patched(merge.live, merge.patch, DEPLOYMENT) == merge.result
