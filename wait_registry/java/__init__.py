"""The Java that Spark, the local broker and Kafka Connect run on, and their jars."""
