"""The doors over HTTP: commands in, questions answered, a live feed; everything else goes through the log."""
