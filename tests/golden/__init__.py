"""One record of each type and version of event that was ever written, read again for ever.

``python -m tests.golden.add`` writes those that are missing; what is there is never written again.
"""
