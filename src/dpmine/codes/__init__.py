"""What a query means on integer codes: all that the kernel reads, and all that engines answer."""
