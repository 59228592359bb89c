"""Read models: projections of the log into SQLite tables.

The tables can be deleted at any time and are rebuilt from the log, byte for byte. The package reads events;
it makes no decisions and writes no events. ``runner`` follows a log; ``query`` and ``object_tables`` read the tables.
"""
