"""The view of clients' Kubernetes Events: they expire by the number of later records."""

import msgspec
import pytest

from events import observations
from events.records import Envelope
from projections import client_events
from projections.client_events import KEPT_RECORDS, ClientEvents
from projections.store import Store


def _envelope(number: int) -> Envelope:
    return Envelope(id=str(number), source="/test", type="", subject="", time="2026-11-25T12:00:00.000Z")


def _written(name: str) -> observations.KubernetesEventWritten:
    raw = msgspec.Raw(b'{"metadata":{},"involvedObject":{"name":"web"}}')
    return observations.KubernetesEventWritten(name=name, namespace="default", manifest=raw)


def _numbers(store: Store, number: int, **chosen: str) -> list[int]:
    with store.reading() as rows:
        return [event.number for event in client_events.listed(rows, number, **chosen)]


def test_event_expires_with_its_records_and_is_a_new_one_when_it_is_written_again() -> None:
    store = Store()
    for number in (1, 5, KEPT_RECORDS + 3):
        with store.writing() as rows:
            view = ClientEvents(rows)
            view.take(number, _envelope(number), _written("a" if number != 5 else "b"))
            view.flush(rows)
    newest = KEPT_RECORDS + 3
    assert _numbers(store, 20) == [5, newest]
    assert _numbers(store, newest + 1) == [5, newest]
    assert _numbers(store, newest + 2) == [newest]
    with store.reading() as rows:
        again = client_events.named(rows, "default", "a", newest)
    assert again is not None
    assert (again.first_number, again.number) == (newest, newest)


@pytest.mark.parametrize("is_one_batch", [False, True])
def test_table_does_not_depend_on_batches(*, is_one_batch: bool) -> None:
    store = Store()
    odd = observations.KubernetesEventWritten(name="odd", namespace="default", manifest=msgspec.Raw(b"5"))
    last = KEPT_RECORDS + 7
    story = [(1, _written("a")), (5, _written("b")), (KEPT_RECORDS + 3, _written("a")), (last, odd)]
    for batch in [story] if is_one_batch else [[entry] for entry in story]:
        with store.writing() as rows:
            view = ClientEvents(rows)
            for number, event in batch:
                view.take(number, _envelope(number), event)
            view.flush(rows)
    stored = store.select("SELECT number FROM client_events ORDER BY number")
    assert stored == [(5,), (KEPT_RECORDS + 3,)]
    with store.reading() as rows:
        again = client_events.named(rows, "default", "a", last)
    assert again is not None
    assert again.first_number == KEPT_RECORDS + 3


def test_events_are_chosen_by_namespace_and_by_the_object_that_they_are_about() -> None:
    store = Store()
    with store.writing() as rows:
        view = ClientEvents(rows)
        view.take(1, _envelope(1), _written("a"))
        view.take(
            2,
            _envelope(2),
            observations.KubernetesEventDeleted(name="c", namespace="x", manifest=msgspec.Raw(b"{}")),
        )
        view.flush(rows)
    assert _numbers(store, 2, namespace="default", involved="web") == [1]
    assert _numbers(store, 2, namespace="other") == []
    assert _numbers(store, 2, involved="other") == []
