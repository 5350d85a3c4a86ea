"""A replay: a bounded range of the input topics, handled again next to the running group."""
