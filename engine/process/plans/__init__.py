"""Predict the effects of planned changes in separate processes, without the server's event loop and memory.

A question is a change whose effects are to be predicted. One process keeps the engine as of a sequence number, and
forks itself for each question, so that questions about the same number share the rebuilt engine. The process ends after
two minutes without questions, which frees its memory.

For each question, the parent passes one end of a socket pair and writes the question to the other end, as a line of
JSON. The forked child answers with lines: zero or more with the virtual time that has passed, in milliseconds; then one
with the prediction as JSON, or with ``failed`` and the reason. The child ends when the parent closes the socket.

If the engine was not stable, effects occur even without the planned change. Then another forked process predicts these
effects, and the child removes them from its own prediction.
"""
