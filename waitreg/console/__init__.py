"""The web console: pages of what waits and what failed, for support staff."""
