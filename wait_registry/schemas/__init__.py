"""The schemas of records in a schema registry, and the Avro that is decoded by them."""
