"""Who looks at a page, what they may see, and what is hidden from everybody."""
