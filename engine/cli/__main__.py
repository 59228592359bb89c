"""``python -m engine.cli``: the same as the command ``reballast``."""

from engine.cli.main import main

main()
