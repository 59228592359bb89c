"""``python -m engine.process.views DIRECTORY``: the child process, started by ``remote`` only."""

import sys
from pathlib import Path

from engine.process import interpreter_settings

if __name__ == "__main__":
    interpreter_settings.collect_rarely()
    from engine.process.views import child  # loading this module takes most of the start-up time

    child.main(Path(sys.argv[1]))
    interpreter_settings.skip_last_collection()
