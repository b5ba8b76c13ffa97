"""What a miner holds."""
