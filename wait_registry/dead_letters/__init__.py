"""Dead letters in the tables: which are meant, what they are, and what became of their redrives."""
