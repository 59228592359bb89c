"""Real Apache Kafka for the tests: named by the environment, in Docker, or as local Java processes."""
