"""Defaults and validation of custom objects by the schemas of their definitions."""

import pytest

from engine.kubeapi.admission import structural
from events.json_values import Json
from tests import lines_run

NAME: Json = {"type": "string"}
OPEN: Json = {"type": "string", "nullable": True}


def _root(**properties: Json) -> Json:
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}


def _defaulted(schema: Json, spec: Json) -> object:
    return structural.defaulted({"kind": "House", "spec": spec}, schema)["spec"]


@pytest.mark.parametrize(
    ("schema", "spec", "result"),
    [
        ({**NAME, "default": "x"}, {}, {"a": "x"}),
        ({**NAME, "default": "x"}, {"a": None}, {"a": "x"}),
        (NAME, {"a": None}, {}),
        # A nullable field has its default if it is absent, and may be null.
        ({**OPEN, "default": "x"}, {}, {"a": "x"}),
        ({**OPEN, "default": "x"}, {"a": None}, {"a": None}),
        ({**OPEN, "default": None}, {}, {}),
        (OPEN, {"a": None}, {"a": None}),
        # Null values of a map and null items of a list follow the same rules.
        ({"type": "object", "additionalProperties": NAME}, {"a": {"b": None, "c": ""}}, {"a": {"c": ""}}),
        ({"type": "object", "additionalProperties": OPEN}, {"a": {"b": None}}, {"a": {"b": None}}),
        (
            {"type": "object", "additionalProperties": {**NAME, "default": "x"}},
            {"a": {"b": None}},
            {"a": {"b": "x"}},
        ),
        ({"type": "array", "items": {**NAME, "default": "x"}}, {"a": [None, "b"]}, {"a": ["x", "b"]}),
        ({"type": "array", "items": {**OPEN, "default": "x"}}, {"a": [None]}, {"a": [None]}),
    ],
)
def test_absent_and_null_values_get_defaults(schema: Json, spec: Json, result: Json) -> None:
    assert _defaulted(_root(a=schema), spec) == result


def test_object_that_needs_no_default_stays_itself() -> None:
    value: Json = {"kind": "House", "spec": {"a": "b", "c": {"d": None}}}
    schema = _root(a={**OPEN, "default": "x"}, c={"type": "object", "additionalProperties": OPEN})
    assert structural.defaulted(value, schema) is value


@pytest.mark.parametrize(("schema", "has_fault"), [(NAME, True), (OPEN, False)])
def test_required_field_may_be_null_if_it_is_nullable(schema: Json, has_fault: bool) -> None:
    root = _root(house={"type": "object", "required": ["a"], "properties": {"a": schema}})
    assert bool(list(structural.faults({"spec": {"house": {"a": None}}}, root))) == has_fault
    assert list(structural.faults({"spec": {"house": {}}}, root))


@pytest.mark.parametrize(
    ("value", "step", "is_multiple"),
    [
        (6, 3, True),
        (7, 3, False),
        (0, 3, True),
        (0.3, 0.1, True),
        (0.35, 0.1, False),
        (1e-12, 0.1, False),
        (4.5, 1.5, True),
        pytest.param(10**400, 0.5, False, id="huge"),
        (1e308, 1e-10, False),
    ],
)
def test_multiples_of_fractions_are_rounded(value: float, step: float, is_multiple: bool) -> None:
    schema = _root(a={"type": "number", "multipleOf": step})
    assert (not list(structural.faults({"spec": {"a": value}}, schema))) == is_multiple


LIST: Json = {"type": "array", "items": {"type": "object"}}
MAP: Json = {**LIST, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
OBJECT: Json = {"type": "object", "additionalProperties": {"type": "integer"}}


@pytest.mark.parametrize(
    ("schema", "accepted", "refused"),
    [
        ({"type": "string", "enum": ["x", "y"]}, "y", "z"),
        ({"type": "string", "minLength": 2}, "éé", "é"),
        ({"type": "string", "maxLength": 2}, "éé", "ééé"),
        ({"type": "integer", "minimum": 2}, 2, 1),
        ({"type": "integer", "minimum": 2, "exclusiveMinimum": True}, 3, 2),
        ({"type": "integer", "maximum": 2}, 2, 3),
        ({"type": "integer", "maximum": 2, "exclusiveMaximum": True}, 1, 2),
        ({"type": "integer"}, 1.0, 1.5),
        ({"type": "integer"}, 0, False),
        ({"type": "boolean"}, False, 0),
        ({"x-kubernetes-int-or-string": True}, "1", True),
        ({**LIST, "minItems": 2}, [{"k": 1}, {"k": 2}], [{"k": 1}]),
        ({**LIST, "maxItems": 1}, [{"k": 1}], [{"k": 1}, {"k": 2}]),
        ({**OBJECT, "minProperties": 2}, {"k": 1, "l": 2}, {"k": 1}),
        ({**OBJECT, "maxProperties": 1}, {"k": 1}, {"k": 1, "l": 2}),
        (OBJECT, {"k": 1}, {"k": "1"}),
        (MAP, [{"k": 1, "l": 1}, {"k": 2, "l": 1}], [{"k": 1, "l": 1}, {"k": 1, "l": 2}]),
        ({"type": "array", "x-kubernetes-list-type": "set", "items": NAME}, ["x", "y"], ["x", "x"]),
    ],
)
def test_values_at_a_limit_are_accepted_and_those_beyond_it_refused(
    schema: Json, accepted: object, refused: object
) -> None:
    root = _root(a=schema)
    assert list(structural.faults({"spec": {"a": accepted}}, root)) == []
    assert len(list(structural.faults({"spec": {"a": refused}}, root))) == 1


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ({"maximum": 2.0}, "less than or equal to 2"),
        ({"maximum": 2.5, "exclusiveMaximum": True}, "less than 2.5"),
        ({"minimum": 4.0}, "greater than or equal to 4"),
        ({"multipleOf": 2.0}, "a multiple of 2"),
    ],
)
def test_whole_limits_are_named_without_fraction(limit: Json, words: str) -> None:
    (fault,) = structural.faults({"spec": {"a": 3}}, _root(a={"type": "number", **limit}))
    assert fault.message == f"Invalid value: 3: spec.a in body should be {words}"


@pytest.mark.parametrize(
    ("most", "words"), [(0, "Too many: 2: must have at most 0 items"), (1, "at most 1 item")]
)
def test_too_many_items_or_fields_are_counted(most: int, words: str) -> None:
    root = _root(a={**LIST, "maxItems": most}, b={**OBJECT, "maxProperties": most})
    faults = list(structural.faults({"spec": {"a": [{}, {}], "b": {"k": 1, "l": 2}}}, root))
    assert [(fault.field, fault.reason) for fault in faults] == [
        ("spec.a", "FieldValueTooMany"),
        ("spec.b", "FieldValueTooMany"),
    ]
    assert all(fault.message.endswith(words) for fault in faults)


def test_defaults_larger_than_an_object_are_refused() -> None:
    large: Json = {"type": "string", "default": "x" * 10_000}
    items: Json = {"type": "object", "properties": {"b": large}}
    schema = _root(a={"type": "array", "items": items}, c={"type": "array", "items": large})
    assert _defaulted(schema, {"a": [{}] * 100}) == {"a": [{"b": "x" * 10_000}] * 100}
    with pytest.raises(structural.DefaultsTooLargeError):
        _defaulted(schema, {"a": [{}] * 200})
    with pytest.raises(structural.DefaultsTooLargeError):
        _defaulted(schema, {"c": [None] * 200})


def test_items_cost_nothing_for_fields_without_defaults() -> None:
    def cost(count: int) -> int:
        properties = {f"f{index}": NAME for index in range(count)}
        schema = _root(a={"type": "array", "items": {"type": "object", "properties": properties}})
        with lines_run.counted() as lines:
            _defaulted(schema, {"a": [{}] * count})
        return lines.count

    assert cost(400) < 6 * cost(100)


HAS_A: Json = {"required": ["a"]}
HAS_B: Json = {"required": ["b"]}
LONG: Json = {"properties": {"a": {"minLength": 3}}}


@pytest.mark.parametrize(
    ("rule", "spec", "words"),
    [
        ({"anyOf": [HAS_A, HAS_B]}, {}, '"spec" must validate at least one schema (anyOf)'),
        ({"anyOf": [HAS_A, HAS_B]}, {"b": "x"}, ""),
        (
            {"oneOf": [HAS_A, HAS_B]},
            {},
            '"spec" must validate one and only one schema (oneOf). Found none valid',
        ),
        ({"oneOf": [HAS_A, HAS_B]}, {"a": "x", "b": "y"}, "(oneOf). Found 2 valid alternatives"),
        ({"oneOf": [HAS_A, HAS_B]}, {"a": "x"}, ""),
        ({"allOf": [HAS_A, HAS_B]}, {"a": "x"}, '"spec" must validate all the schemas (allOf)'),
        ({"allOf": [HAS_A, HAS_B]}, {}, "(allOf). None validated"),
        ({"allOf": [HAS_A, HAS_B]}, {"a": "x", "b": "y"}, ""),
        ({"not": HAS_A}, {"a": "x"}, '"spec" must not validate the schema (not)'),
        ({"not": HAS_A}, {"b": "x"}, ""),
        ({"not": {"anyOf": [HAS_A, HAS_B]}}, {"b": "x"}, "must not validate the schema (not)"),
        ({"allOf": [{"oneOf": [HAS_A, LONG]}]}, {"a": "abc"}, "Found 2 valid alternatives"),
        # Patterns are not checked: alternatives with them are neither valid nor invalid.
        ({"not": {"properties": {"a": {"pattern": "x"}}}}, {"a": "x"}, ""),
        ({"oneOf": [{"properties": {"a": {"pattern": text}}} for text in "xy"]}, {"a": "x"}, ""),
        ({"oneOf": [{**HAS_B, "properties": {"a": {"format": "ipv4"}}}]}, {"a": "x"}, "Found none valid"),
    ],
)
def test_combined_schemas_are_checked(rule: Json, spec: Json, words: str) -> None:
    fields: Json = {"type": "object", "properties": {"a": NAME, "b": NAME}}
    below: Json = {"type": "object", "properties": {"spec": {**fields, **rule}}}
    at_root: Json = {
        "type": "object",
        "properties": {"spec": fields},
        "allOf": [{"properties": {"spec": rule}}],
    }
    for schema in (below, at_root):
        texts = [cause.text for cause in structural.faults({"kind": "House", "spec": spec}, schema)]
        assert any(words in text for text in texts) if words else not texts, texts


def test_fault_of_the_best_alternative_is_named() -> None:
    schema = _root(house={"type": "object", "oneOf": [{"required": ["a", "b"]}, HAS_B]})
    texts = [cause.text for cause in structural.faults({"spec": {"house": {}}}, schema)]
    assert texts == [
        '<nil>: Invalid value: "": "spec.house" must validate one and only one schema (oneOf). Found none valid',
        "spec.house.b: Required value",
    ]
