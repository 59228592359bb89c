"""``python -m engine.cli``: same as the command ``reballast``."""

from engine.cli.main import main

main()
