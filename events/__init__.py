"""Reballast's events: envelope, event structs, encoding and decoding.

All inputs from users and other systems, and all outputs of the engine, are events of this package. It depends
on no other package of the project, so any program that writes or reads the log can use it alone.
"""
