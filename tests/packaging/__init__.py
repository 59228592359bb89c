"""What is shipped: the lock files, and the wheel as users get it."""
