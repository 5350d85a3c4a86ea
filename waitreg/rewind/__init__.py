"""`waitreg rewind`: move a group's committed offsets."""
