"""``completion``: shell scripts that complete commands and options."""

from typing import Annotated, Literal

from cyclopts import Parameter

from engine.cli import main, next_commands, output

Shell = Literal["bash", "zsh", "fish"]


def completion(shell: Annotated[Shell, Parameter(help="Shell that reads the script.")], /) -> None:
    script = main.make_app().generate_completion(prog_name=next_commands.PROGRAM, shell=shell).rstrip()
    output.print_line(script)
    if shell == "zsh":
        # Without this line the script works only from a directory of fpath, not if a shell sources it.
        output.print_line(f"compdef _cyclopts_{next_commands.PROGRAM} {next_commands.PROGRAM}")
