"""Label selectors and field selectors of queries."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.kubeapi.requests import field_selectors, label_selectors
from engine.kubeapi.schema import resources
from events.kube_objects import KubeObject

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
def test_label_selector_matches(text: str, matches: bool) -> None:
    assert label_selectors.labels(text).matches(WEB) is matches


@pytest.mark.parametrize(
    ("text", "matches"),
    [("size>3", True), ("size>4", False), ("size<5,app", True), ("app>3", False), ("other<3", False)],
)
def test_numeric_labels_are_compared(text: str, matches: bool) -> None:
    assert label_selectors.labels(text).matches({**WEB, "size": "4"}) is matches


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("=", "found '=', expected: !, identifier, or 'end of string'"),
        (",app", "found ',', expected: !, identifier, or 'end of string'"),
        ("(a)", "found '(', expected: !, identifier, or 'end of string'"),
        ("app=web,", "found '', expected: identifier after ','"),
        ("app=a=b", "found '=', expected: ',' or 'end of string'"),
        ("!app=web", "found '=', expected: ',' or 'end of string'"),
        ("app web", "unable to parse requirement: found 'web', expected: in, notin, =, ==, !=, gt, lt"),
        ("tier in gold", "unable to parse requirement: found 'gold' expected: '('"),
        ("tier in (gold", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        ("-x=1", 'unable to parse requirement: <nil>: Invalid value: "-x": name part must consist of'),
        ("x=-1", 'unable to parse requirement: values[0][x]: Invalid value: "-1": a valid label must be'),
        (
            "x>many",
            "unable to parse requirement: values[0]: Invalid value: \"many\": for 'Gt', 'Lt' operators",
        ),
    ],
)
def test_invalid_label_selector_is_refused(text: str, words: str) -> None:
    with pytest.raises(label_selectors.SelectorError) as error:
        label_selectors.labels(text)
    assert str(error.value).startswith(words)


def test_event_fields_are_selected() -> None:
    assert EVENTS
    text = "involvedObject.kind=Deployment,involvedObject.name=web,type!=Warning,source=scheduler"
    selector = field_selectors.fields(text, EVENTS)
    event = KubeObject(
        {
            "involvedObject": {"kind": "Deployment", "name": "web"},
            "type": "Normal",
            "source": {"component": "scheduler"},
        }
    )
    assert selector.matches(event)
    assert not selector.matches(event.with_fields({"type": "Warning"}))
    assert selector.exact("involvedObject.name") == "web"
    assert selector.exact("type") is None


def test_absent_field_is_empty_and_values_may_be_escaped() -> None:
    assert PODS
    assert field_selectors.fields("spec.nodeName=", PODS).matches(KubeObject({"spec": {}}))
    assert field_selectors.fields(r"status.phase=a\,b\=c\\", PODS).exact("status.phase") == "a,b=c\\"


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
def test_invalid_field_selector_is_refused(text: str, words: str) -> None:
    assert PODS
    with pytest.raises(label_selectors.SelectorError, match=words):
        field_selectors.fields(text, PODS)


@given(st.text("ab1=!,()<> in", max_size=30))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        selector = label_selectors.labels(text)
    except label_selectors.SelectorError:
        return
    assert isinstance(selector.matches({"a": "b"}), bool)
