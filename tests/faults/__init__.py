"""One named test per fault; `faults.toml` lists the faults, also those that tests elsewhere inject."""
