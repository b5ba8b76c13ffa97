"""Clustering by centres: ours on a private synopsis, and Lloyd's steps with noise as published."""

from dpmine.mining.clustering.dplloyd import DPLloyd
from dpmine.mining.clustering.kmeans import KMeans

__all__ = ["DPLloyd", "KMeans"]
