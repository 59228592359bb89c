"""``python -m engine.process.views DIRECTORY``: the child process, started by ``remote`` only."""

import sys
from pathlib import Path

from engine.process.views import child

if __name__ == "__main__":
    child.main(Path(sys.argv[1]))
