"""Designing noise: what is known beforehand about an answer (its range, a prior) buys accuracy at the same epsilon.

Everything here works on public facts alone. What comes out is a table of whole numbers (`dpmine.finite`), which the
kernel checks again, exactly, before it draws from it.
"""
