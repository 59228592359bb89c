"""The log: one interface (``port``), and the real things behind it."""
