"""Only ``projections`` knows the columns of its tables; other packages call its named queries."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from projections import schema
from tests.tidy import trees

_TABLES: Final = "|".join(re.findall(r"CREATE TABLE (\w+)", schema.STATEMENTS))
_SQL: Final = re.compile(rf"\b(?:FROM|JOIN|INTO|UPDATE)\s+(?:{_TABLES})\b")
_OWN_DATABASES: Final = ("engine/agent/checkpoint.py", "engine/log/")
"""Modules with tables of their own, which may have the same names."""


def _statements(path: Path) -> Iterator[str]:
    for node in trees.nodes(path, ast.Constant):
        if isinstance(node.value, str) and _SQL.search(node.value):
            yield f"{trees.name_of(path)}:{node.lineno}: {node.value.strip()[:80]}"


def test_sql_on_projection_tables_is_found() -> None:
    assert list(_statements(trees.ROOT / "projections/objects.py"))


def test_only_projections_has_sql_on_its_tables() -> None:
    others = [
        path
        for path in trees.modules()
        if trees.name_of(path).startswith(("engine/", "events/"))
        and not trees.name_of(path).startswith(_OWN_DATABASES)
    ]
    statements = [statement for path in others for statement in _statements(path)]
    assert not statements, "move the statement to a named query of projections"
