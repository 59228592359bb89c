"""The engine: deciders, the log, and the doors around them."""
