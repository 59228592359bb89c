"""The guide's four scenarios in virtual time: a worker, members that fail, and a virtual clock."""
