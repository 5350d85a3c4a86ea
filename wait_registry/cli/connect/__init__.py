"""`waitreg connect`: connectors of Kafka Connect, put in place from files, looked at and kept running."""
