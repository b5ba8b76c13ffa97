"""What may be done to noisy answers at no cost: they are public already, so nothing here can spend or leak anything."""
