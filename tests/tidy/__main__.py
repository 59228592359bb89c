"""``python -m tests.tidy report``: sizes, repetitions and private words of the shipped packages."""

import argparse
import asyncio

from rich.console import Console
from rich.table import Table

from tests.tidy import language, measures, one_create


def report() -> Table:
    """Return all measures as a table."""
    table = Table("WHAT", "FIGURE", "WHERE", box=None)
    untyped, functions = measures.untyped_signatures()
    constants, cycles = measures.repeated_constants(), measures.cycles()
    words = language.private_words()
    created = asyncio.run(one_create.functions())
    rows = [
        ("source lines", str(measures.lines()), ""),
        ("modules", str(len(measures.sources())), ""),
        ("functions", str(functions), ""),
        ("functions run for one create", str(len(created)), f"in {len({path for path, _ in created})} files"),
        ("signatures with untyped JSON", f"{untyped / functions:.0%}", f"{untyped} of {functions}"),
        ("constants defined several times", str(len(constants)), "; ".join(list(constants)[:3])),
        ("import cycles, types included", str(len(cycles)), "; ".join(", ".join(cycle) for cycle in cycles)),
        ("private words and openings", str(len(words)), ", ".join(words[:6])),
        *(("longest modules", str(count), name) for count, name in measures.longest_files()),
        *(("longest functions", str(count), name) for count, name in measures.longest_functions()),
    ]
    for row in rows:
        table.add_row(*row)
    return table


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.tidy", description=__doc__)
    parser.add_argument("command", choices=("report",))
    parser.parse_args()
    Console().print(report())
