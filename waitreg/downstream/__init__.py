"""`waitreg downstream`: an HTTP service with chosen latencies and failures, and the log of its calls."""
