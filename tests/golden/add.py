"""``python -m tests.golden.add``: write the missing golden files, and change no others."""

import sys

from tests.golden import files
from tests.golden.samples import table


def main() -> None:
    for event_type in table.SAMPLES:
        if not files.path_of(event_type).exists():
            sys.stdout.write(f"{files.write(event_type).name}\n")


if __name__ == "__main__":
    main()
