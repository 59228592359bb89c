"""Names of field managers: one rule for the option and for the name from a user agent."""

import pytest

from engine.kubeapi.patching import managed_fields
from engine.kubeapi.requests import options


def details(name: str) -> list[str]:
    return [cause.message for cause in options.of_manager(name, needed=False)]


@pytest.mark.parametrize("name", ["kubectl", "é" * 64, "a b", "\u00a1", "\U0001f980" * 32])
def test_printable_name_of_128_bytes_is_valid(name: str) -> None:
    assert details(name) == []
    assert managed_fields.name_of_agent(f"{name}/v1.36") == name


def test_name_is_measured_in_bytes() -> None:
    assert "128" in "".join(details("é" * 65))
    assert managed_fields.name_of_agent("é" * 65) == "é" * 64
    assert managed_fields.name_of_agent("a" + "é" * 64) == "a" + "é" * 63


@pytest.mark.parametrize("sign", ["\n", "\x7f", "\x85", "\u00a0"])
def test_unprintable_character_is_refused_in_the_option_and_dropped_from_an_agent_name(sign: str) -> None:
    assert f"not U+{ord(sign):04X} (at position 3)" in "".join(details(f"kub{sign}ctl"))
    assert managed_fields.name_of_agent(f"kub{sign}ctl/v1.36") == "kubctl"
