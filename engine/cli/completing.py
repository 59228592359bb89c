"""``completion``: scripts by which shells complete commands and their options."""

from typing import Final, Literal

from engine.cli import main, showing

_PROGRAM: Final = "reballast"
Shell = Literal["bash", "zsh", "fish"]


def completion(shell: Shell, /) -> None:
    """Print a script that completes commands and options in a shell."""
    script = main.make_app().generate_completion(prog_name=_PROGRAM, shell=shell).rstrip()
    showing.say(script)
    if shell == "zsh":
        # The script is made for a file in fpath; this line makes it work when it is sourced, too.
        showing.say(f"compdef _cyclopts_{_PROGRAM} {_PROGRAM}")
