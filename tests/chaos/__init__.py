"""What `make chaos` runs: schedules by seed, faults with their proofs, the history of a run and its checker."""
