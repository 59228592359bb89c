"""Export of a log to files for other programs, and import of such files into an empty log."""
