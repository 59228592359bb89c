"""The compose file: right as far as that can be told without Docker, and its topology as processes of this machine."""
