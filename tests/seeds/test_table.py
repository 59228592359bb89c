"""The table of steps in README.md is complete and correct."""

from tests.seeds import steps
from tests.seeds.__main__ import README, with_table


def test_each_step_of_the_documents_has_a_test() -> None:
    with_table("")

    assert steps.untested() == []


def test_table_of_steps_is_up_to_date() -> None:
    read = README.read_text(encoding="utf-8")

    assert read == with_table(read), "update the table: python -m tests.seeds"
