"""The trace of an applied plan: its id is the plan's, and records that follow from it name the plan."""

import uuid

import pytest

from events import tracing

PLAN = "0f0f0f0f-1234-4abc-8def-001122334455"


def test_trace_names_its_plan() -> None:
    trace = tracing.of_plan(PLAN)
    assert tracing.trace(trace.parent, trace.state) == trace
    assert tracing.plan_of(trace) == PLAN


@pytest.mark.parametrize("state", ["", "reballast=planned", "vendor=reballast", "x=reballast=plan"])
def test_other_traces_name_none(state: str) -> None:
    assert tracing.plan_of(tracing.Trace(tracing.of_plan(PLAN).parent, state)) == ""


def test_state_may_have_other_members() -> None:
    trace = tracing.Trace(tracing.of_plan(PLAN).parent, "vendor=a, reballast=plan")
    assert tracing.plan_of(trace) == str(uuid.UUID(PLAN))
