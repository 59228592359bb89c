"""Plans in processes of their own, which use neither the event loop nor the memory of the server.

A question is a change whose effects are to be predicted. One process keeps the engine as of a sequence number, and
forks itself for each question, so that questions about the same number share the rebuilt engine. The process ends after
two minutes without questions, which frees its memory.

For each question, the parent passes one end of a socket pair and writes the question to the other end, as a line of
JSON. The forked child answers with lines: zero or more with the virtual time that has passed, in milliseconds; then one
with the prediction as JSON, or with ``failed`` and the reason. The child ends when the parent closes the socket.

If the engine was not stable, changes happen even without the planned one. Then another forked process predicts what
happens without it, and the child leaves out of its prediction what happens in the same way.
"""
