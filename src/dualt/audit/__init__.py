"""Verified labels: which to check, the table to fill in, and how they correct an estimate or an accuracy."""

from dualt.audit.calibration import AuditResult, Calibration, correct_by_audit, corrected_fit
from dualt.audit.evaluation import NoisyAccuracy, noisy_accuracy
from dualt.audit.verified import Audit, as_audit, audit_of, check_order, new_sheet, read_audit, read_sheet

__all__ = [
    "Audit", "AuditResult", "Calibration", "NoisyAccuracy", "as_audit", "audit_of", "check_order", "correct_by_audit",
    "corrected_fit", "new_sheet", "noisy_accuracy", "read_audit", "read_sheet",
]  # fmt: skip
