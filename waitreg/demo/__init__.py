"""`waitreg demo`: throughput compared with a batch consumer, a crash, and a reconciliation."""
