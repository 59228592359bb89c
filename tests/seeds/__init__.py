"""Every step of the users' documents, on the command line with a server started as users start it."""
