"""Plans in processes of their own, so that neither the event loop nor the memory of the server pays for them.

The parent writes one question to the child's standard input. The child answers with lines: the virtual time that has
passed, in milliseconds, any number of times; at the end the prediction as JSON, or ``failed`` and the reason.
"""
