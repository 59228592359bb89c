"""The shipped files: lock files, and the wheel as users install it."""
