"""Engines answer a handful of exact questions with integers. Only the kernel listens to them."""
