"""The same requests to a real API server and to ours: stories, how they are played, what was answered."""
