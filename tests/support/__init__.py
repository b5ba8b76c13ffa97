"""What several tests need: small worlds, deliberate noise, far ends of wires. Imported as `from support.x import y`."""
