"""What everything stands on: errors, epsilon, JSON values, exact exponentials, public randomness, processes."""
