"""The command `waitreg` and what operators use: a folder per feature, a file for each other subcommand."""
