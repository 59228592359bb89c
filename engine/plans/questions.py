"""The question of a plan: hypothetical inputs and failures, and the point of the log that they start from."""

import os
from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Meta, Struct

from engine.simulation import faults, specs
from engine.simulation.listed_statuses import FaultKind
from events import times
from events.records import Record

AT_ONCE_MAX: Final = max(2, os.cpu_count() or 1)
"""Maximum number of predictions that run at the same time."""

HORIZON_MS: Final = 1_800_000
"""Virtual time that a plan looks ahead by default: half an hour, in milliseconds."""

HORIZON_MS_MAX: Final = 7 * times.DAY_MS
"""Maximum virtual time that a plan looks ahead, in milliseconds."""


class Input(Struct, frozen=True, kw_only=True):
    """A hypothetical input, appended when ``after_ms`` of virtual time have passed."""

    record: Record
    after_ms: int = 0


class Failure(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A hypothetical fault of a member (``simulation.faults``), after ``after_ms`` of virtual time."""

    member: str
    kind: FaultKind = "down"
    amount: faults.Amount | None = None
    after_ms: Annotated[int, Meta(extra_json_schema={"minimum": 0})] = 0


class PlanError(Exception):
    """A plan that can't be made; the message is the reason."""


class Question(Struct, frozen=True, kw_only=True):
    """A hypothetical change: its inputs and failures, and the state of the installation to apply them to.

    ``simulated`` are the simulated members of the installation, ``faults`` the faults that they have now; all other
    clusters are modelled by their last reports. ``began_ms`` is the virtual time of the change, in milliseconds since
    1970; ``number`` is the log number to start from, None for the end of the log. ``autoscaled`` maps the binding
    keys of autoscalers to those of the workloads that they scale.
    """

    began_ms: int
    inputs: tuple[Input, ...] = ()
    failures: tuple[Failure, ...] = ()
    simulated: tuple[specs.MemberSpec, ...] = ()
    faults: tuple[Failure, ...] = ()
    number: int | None = None
    horizon_ms: int = HORIZON_MS
    autoscaled: Mapping[str, str] = {}
