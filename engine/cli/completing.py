"""``completion``: scripts by which shells complete commands and their options."""

from typing import Literal

from engine.cli import main, showing

Shell = Literal["bash", "zsh", "fish"]


def completion(shell: Shell, /) -> None:
    """Print a script that completes commands and options in a shell."""
    showing.say(main.make_app().generate_completion(prog_name="reballast", shell=shell).rstrip())
