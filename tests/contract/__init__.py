"""Golden vectors, which serve Python and Java alike, and the shape of the product."""
