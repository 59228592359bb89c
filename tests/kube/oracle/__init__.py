"""Stories of requests, played against a real API server and against ours, and the recorded answers."""
