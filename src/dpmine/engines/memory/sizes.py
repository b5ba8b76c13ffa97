"""How much the memory engine holds at a time. Looked up where it is used, so that tests can make it small."""

CHUNK = 65_536  # rows
LONG_CHUNK = 4 * CHUNK  # where an array as long as all combinations is added for each chunk
NEAREST_AT_ONCE = 8_192  # rows whose distances to all centres are held at a time
FUSED = 2**15  # combinations of keys that are counted at once instead of key by key
DENSE = 2**20  # combinations that are counted in an array; more are sorted
