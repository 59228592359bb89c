"""The events of Reballast: their envelope, their structs, their way to bytes and back.

Everything that people, systems and the engine itself say is one of these events. The package knows
neither logs nor deciders; it can be used alone by whoever writes or reads the log.
"""
