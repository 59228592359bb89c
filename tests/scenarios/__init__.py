"""The guide's four scenarios in virtual time: the worker, members that fail, and a clock that is a number."""
