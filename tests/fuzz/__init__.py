"""What `make fuzz` runs: targets, the corpus and its replay."""
