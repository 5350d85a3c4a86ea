"""Dead letters: which are meant, what they are, and how they are handled again."""
