"""A question of another package: three files of one stem, and its audit pair. Nothing in the product names it."""
