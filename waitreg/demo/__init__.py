"""`waitreg demo`: throughput beside a batch consumer, a crash, and a reconciliation."""
