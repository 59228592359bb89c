"""Every step of the users' documents, by the command line against a server started as users start it."""
