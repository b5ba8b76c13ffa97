"""Decision trees: as published by Friedman and Schuster, and ours."""
