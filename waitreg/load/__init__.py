"""`waitreg load`: records to publish, realistic or hostile, and the manifest of what was published."""
