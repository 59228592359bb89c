"""Help texts of the commands; the first line is shown in the list of commands.

They are separate from the commands, so that the list can be shown without loading any command.
"""
