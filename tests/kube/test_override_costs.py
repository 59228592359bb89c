"""The cost of overriders that name many arguments."""

import msgspec
import pytest

from engine.overrides import application
from events.json_values import Json, list_at
from events.kube_objects import KubeObject
from tests.builders.manifests import manifest


def _overridden(containers: list[Json], **argument_overrider: object) -> KubeObject:
    """A Pod with these containers, overridden by one overrider of the arguments of ``web``."""
    pod = manifest("v1", "Pod", "web", spec={"containers": containers})
    rule: Json = {"argsOverrider": [{"containerName": "web", **argument_overrider}]}
    overridden = application.OverrideApplication(KubeObject(pod))
    overridden.apply(application.read(msgspec.json.encode(rule)))
    return overridden.value


def test_empty_arguments_for_many_containers_are_a_fault() -> None:
    with pytest.raises(application.OverrideError, match="is too much for one object"):
        _overridden([{"name": "web"}] * 500, operator="add", value=[""] * 10_000)


class _Argument(str):
    """An argument that counts how often it is compared."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        _Argument.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_removed_arguments_are_looked_up() -> None:
    arguments: list[object] = [_Argument(f"a{index}") for index in range(100)]
    container: Json = {"name": "web", "args": [*arguments, "b1", {"not": "a text"}]}
    pod = _overridden([container], operator="remove", value=[f"b{index}" for index in range(100)])
    comparisons = _Argument.comparisons
    changed = pod.objects_at("spec", "containers")[0]
    assert list_at(changed, "args") == [*arguments, {"not": "a text"}]
    assert comparisons < 1_000
