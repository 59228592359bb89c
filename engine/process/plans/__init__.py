"""Plans in processes of their own, which use neither the event loop nor the memory of the server.

One process keeps the engine as of a number of the log, and forks itself for each question, so that questions about
the same number share what it has rebuilt. It ends after two minutes without questions, which frees its memory.

The parent passes one end of a socket pair for each question, and writes the question to the other end: its length in
8 bytes, and JSON. The forked child answers with lines: the virtual time that has passed, in milliseconds, any number
of times; at the end the prediction as JSON, or ``failed`` and the reason. The child ends when the parent closes the
socket.
"""
