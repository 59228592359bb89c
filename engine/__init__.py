"""The engine: deciders, the log, and the servers around them."""
