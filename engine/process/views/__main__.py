"""``python -m engine.process.views DIRECTORY``: the child process, started by ``remote`` only."""

import sys
from pathlib import Path

from engine.process import interpreter_settings

if __name__ == "__main__":
    interpreter_settings.collect_rarely()
    from engine.process.views import child  # loading it is most of the start

    child.main(Path(sys.argv[1]))
    interpreter_settings.skip_last_collection()
