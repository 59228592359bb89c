"""Selectors of queries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kube import resources, selectors
from engine.kube.schemas import Json

CATALOGUE = resources.control_plane()
EVENTS = CATALOGUE.resource("", "v1", "events")
PODS = CATALOGUE.resource("", "v1", "pods")
WEB = {"app": "web", "tier": "gold", "example.com/empty": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web,tier=gold", True),
        ("app = web , tier!=gold", False),
        ("other!=x", True),
        ("tier in (gold, silver)", True),
        ("tier notin (gold,silver)", False),
        ("tier notin(x),app", True),
        ("other notin (x)", True),
        ("!other", True),
        ("!app", False),
        ("app", True),
        ("example.com/empty=", True),
        ("example.com/empty in (,x)", True),
    ],
)
def test_labels(text: str, matches: bool) -> None:
    assert selectors.labels(text).matches(WEB) is matches


@pytest.mark.parametrize(
    "text",
    [
        "=",
        "app=web,",
        ",app",
        "app web",
        "tier in gold",
        "tier in (gold",
        "!app=web",
        "a b",
        "app=a=b",
        "-x=1",
        "(a)",
    ],
)
def test_what_is_no_label_selector(text: str) -> None:
    with pytest.raises(selectors.SelectorError, match="unable to parse requirement"):
        selectors.labels(text)


def test_fields_of_events() -> None:
    assert EVENTS
    text = "involvedObject.kind=Deployment,involvedObject.name=web,type!=Warning,source=scheduler"
    found = selectors.fields(text, EVENTS)
    event: Json = {
        "involvedObject": {"kind": "Deployment", "name": "web"},
        "type": "Normal",
        "source": {"component": "scheduler"},
    }
    assert found.matches(event)
    assert not found.matches({**event, "type": "Warning"})
    assert found.exact("involvedObject.name") == "web"
    assert found.exact("type") is None


def test_an_absent_field_is_empty_and_values_may_be_escaped() -> None:
    assert PODS
    assert selectors.fields("spec.nodeName=", PODS).matches({"spec": {}})
    assert selectors.fields(r"status.phase=a\,b\=c\\", PODS).exact("status.phase") == "a,b=c\\"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("spec.x=1", "field label not supported: spec.x"),
        ("metadata.name", "can't understand 'metadata.name'"),
        (r"metadata.name=a\b", "not escaped"),
        ("metadata.name=a=b", "not escaped"),
        ("x" * 20_000, "longer than"),
    ],
)
def test_what_is_no_field_selector(text: str, words: str) -> None:
    assert PODS
    with pytest.raises(selectors.SelectorError, match=words):
        selectors.fields(text, PODS)


@given(st.text("ab=!,() in", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = selectors.labels(text)
    except selectors.SelectorError:
        return
    assert isinstance(found.matches({"a": "b"}), bool)
