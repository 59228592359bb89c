"""Samples of the topic ``works``."""

from typing import Final

from events import shapes, works
from tests.golden.samples.values import DIGEST, KEY, OVERRIDE, READING, TEMPLATE

_APPLIED: Final = works.WorkApplied(
    cluster="member1",
    key=KEY,
    template=TEMPLATE,
    shard=3,
    offset=8,
    digest=DIGEST,
    term=2,
    step=7,
    replicas=3,
    overrides=(OVERRIDE,),
    labels={"example.com/job": "a1"},
    reading=READING,
    overwrites=True,
    completions=3,
)
WORKS: Final[tuple[shapes.Event, ...]] = (
    _APPLIED,
    works.WorkRemoved(cluster="member1", key=KEY, term=2, step=8, preserved=True),
    works.WorkSuspended(cluster="member1", key=KEY, term=2, step=9, pending=_APPLIED),
)
