"""One record of each type and version of event ever written; all must stay readable forever.

``python -m tests.golden.add`` writes the missing ones; existing ones are never rewritten.
"""
