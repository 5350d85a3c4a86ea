"""The subcommands of `waitreg`: one module each, importing what it runs only when it is run."""
