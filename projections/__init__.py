"""Read models: what the log says, folded into tables that answer questions.

Everything here can be thrown away and is built again from the log, byte for byte (design sections 5 and 7).
The package reads events; it decides nothing and writes none. ``runner`` follows a log, ``query`` answers.
"""
