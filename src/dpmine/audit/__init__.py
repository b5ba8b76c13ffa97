"""Measured epsilon: every privacy claim is attacked on the neighbours that are worst for it.

A lower confidence bound on epsilon that exceeds the claim refutes it. A bound below the claim proves nothing: it says that
this attack, with so many runs, found no violation.
"""

from dpmine.audit.own_mechanisms import AuditResult, audit

__all__ = ["AuditResult", "audit"]
