"""The console's HTTP server; only here is anything of aiohttp."""
