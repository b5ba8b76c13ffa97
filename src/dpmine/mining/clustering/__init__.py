"""Clustering: private k-means."""
