"""Read models: projections of the log into SQLite tables.

The tables can be deleted at any time and are rebuilt from the log, byte for byte. The package reads events
but decides nothing and writes none. ``runner`` follows a log; ``query`` and ``object_tables`` answer requests.
"""
