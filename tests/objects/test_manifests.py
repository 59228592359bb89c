"""Parsing of submitted content, hostile content included."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.objects import manifests
from engine.objects.manifest_limits import Limits

LIMITS = Limits(content_bytes_max=1 << 22, documents_max=100, depth_max=64, repeated_bytes_max=1 << 20)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def read(content: str | bytes) -> list[manifests.Document | manifests.Fault]:
    raw = content if isinstance(content, bytes) else content.encode()
    return manifests.read(raw, file="app.yaml", limits=LIMITS)


def only(content: str | bytes) -> dict[str, object]:
    (document,) = read(content)
    assert isinstance(document, manifests.Document)
    return document.value


def fault(content: str | bytes) -> manifests.Fault:
    last = read(content)[-1]
    assert isinstance(last, manifests.Fault)
    return last


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("y", "y"),
        ("1:30", "1:30"),
        ("2024-05-25", "2024-05-25"),
        ("1_000", "1_000"),
        ("0b1", "0b1"),
        ("'3'", "3"),
        ("3", 3),
        ("-7", -7),
        ("0x1F", 31),
        ("0o17", 15),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("True", True),
        ("~", None),
        ("", None),
        ("1.2.3", "1.2.3"),
    ],
)
def test_yaml_1_2_core_schema_types_scalars(text: str, value: object) -> None:
    assert only(f"a: {text}\n") == {"a": value}


def test_documents_lists_and_comments_are_read_up_to_a_syntax_error() -> None:
    entries = read(
        "# a file\n---\na: 1\n---\n# nothing\n---\n"
        "kind: List\nitems:\n- {kind: A}\n- 3\n---\nb: [1\n--- {c: 2}\n...\n"
    )

    assert [(entry.index, entry.line) for entry in entries] == [(1, 2), (2, 6), (2, 6), (3, 13), (4, 13)]
    values = [entry.value if isinstance(entry, manifests.Document) else entry.field for entry in entries]
    assert values == [{"a": 1}, {"kind": "A"}, "items[1]", "", {"c": 2}]


def test_consecutive_json_documents_are_read() -> None:
    entries = read('{"a": 1}\n{"a": 2}\n{"a": 3')

    assert [entry.value for entry in entries if isinstance(entry, manifests.Document)] == [{"a": 1}, {"a": 2}]
    assert (entries[2].line, entries[2].index) == (3, 3)


def test_yaml_flow_mapping_is_read() -> None:
    assert only("{a: no, b: [x]}") == {"a": "no", "b": ["x"]}


def test_anchors_and_merge_keys_are_resolved() -> None:
    assert only("a: &x {b: 1, c: 2}\nd: *x\ne:\n  <<: *x\n  c: 3\n") == {
        "a": {"b": 1, "c": 2},
        "d": {"b": 1, "c": 2},
        "e": {"b": 1, "c": 3},
    }


BOMB = (
    "a: &a ["
    + ",".join(["x" * 100] * 10)
    + "]\n"
    + "".join(
        f"{new}: &{new} [{','.join(['*' + old] * 10)}]\n"
        for old, new in zip("abcdefg", "bcdefgh", strict=True)
    )
)

HOSTILE: list[tuple[str, str | bytes, str, int]] = [
    ("alias bomb", BOMB, "add more than", 4),
    ("alias of itself", "a: &a [*a]\n", "inside its own", 1),
    ("deep JSON", '{"a":' * 100_000 + "1" + "}" * 100_000, "nested deeper than 64", 1),
    ("deep YAML", "[" * 100_000, "nested deeper than 64", 1),
    ("deep YAML by lines", "".join(" " * i + "a:\n" for i in range(70)), "nested deeper than 64", 65),
    ("duplicate key", "a: 1\nb: 2\na: 3\n", "occurs twice", 3),
    ("duplicate key in JSON", '{"a": {"b": 1,\n"b": 2}}', "occurs twice", 2),
    ("number as key", "1: x\n", "is not a string", 1),
    ("object as key", "? {a: 1}\n: 2\n", "is not a string", 1),
    ("tag", "x: 1\na: !!python/object:os.system ls\n", "has the tag", 2),
    ("not a number", "a: .nan\n", "not a finite number", 1),
    ("not a number in JSON", '{"a": NaN}', "not a finite number", 1),
    ("infinite", '{"a": 1e999}', "not a finite number", 1),
    ("endless number", "a: " + "9" * 5000, "fit into 64 bits", 1),
    ("endless number in JSON", '{"a": ' + "9" * 5000 + "}", "fit into 64 bits", 1),
    ("octal or decimal", "mode: 0644\n", "octal to some readers", 1),
    ("half a character", '{"a": "\\ud800"}', "surrogate", 1),
    ("no UTF-8", b"a: \xff\n", "byte 3 is not valid UTF-8", 0),
    ("control character", "a: \x01\n", "control characters", 1),
    ("tab", "a:\n\t- b\n", "invalid YAML", 2),
    ("open bracket", "a: 1\nb: [\n", "invalid YAML", 3),
    ("list", "[]", "is a list, not an object", 1),
    ("text", "hello", "is text, not an object", 1),
    ("too large", b"#" * (LIMITS.content_bytes_max + 1), "bytes; the limit is", 0),
    ("too many documents", "---\na: 1\n" * 200, "more than 100 documents", 201),
]


@pytest.mark.parametrize(
    ("content", "reason", "line"), [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE]
)
def test_hostile_content_is_a_fault_with_its_line(content: str | bytes, reason: str, line: int) -> None:
    began_s = time.process_time()

    refused = fault(content)

    assert reason in refused.reason
    assert refused.line == line
    assert refused.file == "app.yaml"
    assert time.process_time() - began_s < 1


def test_line_of_a_field_is_found() -> None:
    (document,) = read("# top\nkind: A\nspec:\n  list:\n  - name: x\n    b.c: 1\n")

    assert isinstance(document, manifests.Document)
    assert manifests.line_of(document, "spec.list[0].name") == 5
    assert manifests.line_of(document, "spec.list[0].missing.deeper") == 5
    assert manifests.line_of(document, "spec.list[0].b.c") == 6


@pytest.mark.slow
@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_json_round_trips(value: dict[str, object]) -> None:
    content = json.dumps(value)

    entries = read(content)

    assert [entry.value for entry in entries if isinstance(entry, manifests.Document)] == [value]


@given(st.binary(max_size=200) | st.text(alphabet="-:[]{}&*!|>'\"#%@` \n\tab01.<?,", max_size=120))
def test_arbitrary_content_never_raises(content: bytes | str) -> None:
    for entry in read(content):
        if isinstance(entry, manifests.Document):
            assert manifests.line_of(entry, "spec.x") >= 0
            json.dumps(entry.value, allow_nan=False).encode()
        else:
            assert entry.reason


def test_repeated_fields_of_yaml_are_listed_up_to_a_number() -> None:
    text = "".join(f"n{index}: 1\nn{index}: 2\n" for index in range(150))
    repeated: list[str] = []
    (document,) = manifests.read(text.encode(), file="", limits=LIMITS, repeated=repeated)
    assert isinstance(document, manifests.Document)
    assert document.value["n149"] == 2
    assert repeated == [f"n{index}" for index in range(100)]
