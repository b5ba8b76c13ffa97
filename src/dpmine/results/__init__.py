"""What miners get back around an answer: previews, receipts, estimates, statements."""
