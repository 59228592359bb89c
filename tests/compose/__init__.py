"""The compose file: static checks without Docker, and its topology as local processes."""
