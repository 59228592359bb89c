"""The index of templates finds the same templates as a scan with each selector."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.deciders.indexes import Templates
from engine.deciders.state import Template
from engine.objects import policies, workloads
from engine.objects.selector_index import Selection
from tests.deciders import strategies


def _template_of(template: strategies.Template) -> Template:
    return Template(template.ref, dict(template.labels), "", 1, 0, "", workloads.Size(None, None))


def _is_selected(selector: policies.ResourceSelector, template: Template) -> bool:
    ref, labels = template.ref, selector.label_selector
    return (
        (selector.api_version, selector.kind) == (ref.api_version, ref.kind)
        and selector.namespace in {"", ref.namespace}
        and (
            selector.name == ref.name if selector.name else labels is None or labels.matches(template.labels)
        )
    )


_Change = tuple[Literal["applied", "deleted"], strategies.Template]


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from(["applied", "deleted"]), strategies.templates()), max_size=12),
    strategies.policy_lists(),
    strategies.policy_lists(),
)
def test_index_finds_the_same_templates_as_a_scan(
    changes: list[_Change], early: list[policies.Policy], late: list[policies.Policy]
) -> None:
    index = Templates()
    known: dict[str, Template] = {}
    for change, template in changes:
        key = template.ref.binding_key
        new = _template_of(template) if change == "applied" else None
        index.put(key, new)
        known.pop(key, None)
        if new is not None:
            known[key] = new
        # Labels are indexed from the first query by them on.
        for policy in early:
            index.selected(Selection(policy.selectors))
    for policy in (*early, *late):
        scanned = {
            key
            for key, template in known.items()
            if any(_is_selected(selector, template) for selector in policy.selectors)
        }
        selection = Selection(policy.selectors)
        assert index.selected(selection) == scanned
        assert {key for key, template in known.items() if selection.selects(template)} == scanned
