"""Seedable randomness for public choices: the random structure of a forest, folds of public data, simulated noise.

Nothing here protects anything. Noise that protects comes from the kernel's entropy alone, which has no seed.
"""

import numpy as np

PublicGenerator = np.random.Generator


def public_generator(seed: int | None) -> PublicGenerator:
    """A generator; the same seed gives the same choices, None gives others each time."""
    return np.random.default_rng(seed)
