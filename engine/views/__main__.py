"""``python -m engine.views DIRECTORY``: the child process, started by ``remote`` only."""

import sys
from pathlib import Path

from engine.views import following

if __name__ == "__main__":
    following.main(Path(sys.argv[1]))
