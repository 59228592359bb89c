"""The lock files: complete, hashed, consistent with each other, and without URLs."""

import re
import tomllib
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.tidy import trees

_PIN: Final = re.compile(r"^([a-zA-Z0-9._-]+)==([^ ]+)(?: ; ([^\\]+))? \\$", re.MULTILINE)
_LOCKS: Final = ("requirements.lock", "tests/requirements.lock")


def _pins(lock: str) -> dict[str, set[str]]:
    pins: dict[str, set[str]] = {}
    for name, version, _ in _PIN.findall((trees.ROOT / lock).read_text()):
        pins.setdefault(canonicalize_name(name), set()).add(version)
    return pins


def _requirements(*, tests: bool) -> list[Requirement]:
    project = tomllib.loads((trees.ROOT / "pyproject.toml").read_text())
    lines = project["project"]["dependencies"] + (project["dependency-groups"]["test"] if tests else [])
    return [Requirement(line) for line in lines]


@pytest.mark.parametrize("lock", _LOCKS)
def test_every_dependency_is_locked_within_its_declared_range(lock: str) -> None:
    pins = _pins(lock)
    for requirement in _requirements(tests=lock != _LOCKS[0]):
        versions = pins.get(canonicalize_name(requirement.name), set())
        assert versions, f"{requirement.name} is not in {lock}"
        assert all(requirement.specifier.contains(version) for version in versions), (
            f"{requirement} but {versions}"
        )


def test_tests_use_the_shipped_versions() -> None:
    used, shipped = _pins(_LOCKS[1]), _pins(_LOCKS[0])
    assert {name: used.get(name) for name in shipped} == shipped


@pytest.mark.parametrize("lock", _LOCKS)
def test_every_pin_has_a_hash_and_no_url(lock: str) -> None:
    text = (trees.ROOT / lock).read_text()
    entries = re.split(r"\n(?=[a-zA-Z0-9])", text)
    assert len(entries) == sum(len(versions) for versions in _pins(lock).values())
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in text
    assert "--index-url" not in text
    assert "--find-links" not in text
