"""`waitreg connect`: apply, show, watch and remove the connectors of Kafka Connect."""
