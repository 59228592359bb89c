"""The agent's checkpoint: atomic, per cluster, and ignored if it is unreadable."""

from pathlib import Path

from engine.agent import checkpoint, messages, reconciliation
from engine.agent.checkpoint import Checkpoint
from engine.agent.reconciliation import Applied, Entry
from events.shapes import WorkloadRef

REF = WorkloadRef(api_version="apps/v1", kind="Deployment", name="web", namespace="default")
WORK = messages.Work(
    key="k", state="applied", term=1, step=2, template=REF, digest="d", replicas=3, overrides="o"
)
ENTRY = Entry(
    work=WORK,
    ref=REF,
    applied=Applied(
        ref=REF,
        term=1,
        step=2,
        content=reconciliation.content_of(WORK),
        uid="u",
        fields="f",
        is_retained=True,
    ),
    reported=messages.WorkloadReport(key="k", term=1, step=2, replicas=3),
)


def test_saved_checkpoint_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "agent.sqlite"
    kept = Checkpoint(path)
    assert kept.load("one") == (None, {})
    kept.save("one", 7, {"k": checkpoint.encoded(ENTRY)})
    kept.save("two", 9, {})
    kept.close()

    again = Checkpoint(path)
    assert again.load("one") == (7, {"k": ENTRY})
    assert again.load("two") == (9, {})
    again.save("one", 8, {"k": None})
    assert again.load("one") == (8, {})
    again.forget("two")
    assert again.load("two") == (None, {})
    again.close()
    assert path.stat().st_mode & 0o077 == 0


def test_unreadable_checkpoint_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "agent.sqlite"
    path.write_bytes(b"no database, this" * 100)
    kept = Checkpoint(path)
    assert kept.load("one") == (None, {})
    kept.close()
