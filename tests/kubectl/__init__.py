"""The real kubectl against a real server: commands of platform engineers, and their output."""
