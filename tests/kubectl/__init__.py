"""The real kubectl against a real server: what a platform engineer types, and what is printed."""
