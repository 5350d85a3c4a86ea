"""`waitreg connect`: print, check and watch the connectors of Kafka Connect."""
