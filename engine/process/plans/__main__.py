"""The child process of one plan."""

from engine.process.plans import child

child.main()
