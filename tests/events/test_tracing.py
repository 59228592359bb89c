"""Validation of trace contexts (W3C Trace Context, level 1)."""

import pytest

from events import tracing

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
WELL_FORMED = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize("parent", [WELL_FORMED, f"00-{TRACE}-{SPAN}-00", f"fe-{TRACE}-{SPAN}-ff"])
def test_well_formed_parent_is_kept(parent: str) -> None:
    assert tracing.trace(parent) == tracing.Trace(parent)


@pytest.mark.parametrize(
    "parent",
    [
        "",
        "00",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"00-{TRACE}-{SPAN}-01\n",
    ],
)
def test_malformed_parent_is_no_trace(parent: str) -> None:
    assert tracing.trace(parent, "shop=1") == tracing.NO_TRACE


@pytest.mark.parametrize("state", ["shop=1", "shop=1,other=a b", "x" * 512])
def test_valid_state_is_kept_unchanged(state: str) -> None:
    assert tracing.trace(WELL_FORMED, state).state == state


@pytest.mark.parametrize("state", ["x" * 513, "shop=ä", "shop=1\n"])
def test_invalid_state_is_dropped(state: str) -> None:
    assert tracing.trace(WELL_FORMED, state) == tracing.Trace(WELL_FORMED)
