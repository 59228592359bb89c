"""The command line, as a user has it."""
