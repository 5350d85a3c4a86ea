"""The real code in simulated worlds: the engine by seeds, all services in every order of steps."""
