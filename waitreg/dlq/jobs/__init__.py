"""`waitreg dlq jobs`, a file per subcommand."""
