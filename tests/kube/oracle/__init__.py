"""Stories of requests, sent to a real API server and to Reballast, and the recorded responses."""
