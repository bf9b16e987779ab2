"""What verified labels say: which to check, the file to fill in, and how they correct an estimate."""

from dualt.audit.calibration import Calibration
from dualt.audit.correction import AuditResult, calibrated_posterior, correct_by_audit, corrected_fit
from dualt.audit.evaluation import NoisyAccuracy, noisy_accuracy
from dualt.audit.sheet import Sheet, read_audit, read_sheet
from dualt.audit.verified_labels import Audit, as_audit

__all__ = [
    "Audit",
    "AuditResult",
    "Calibration",
    "NoisyAccuracy",
    "Sheet",
    "as_audit",
    "calibrated_posterior",
    "correct_by_audit",
    "corrected_fit",
    "noisy_accuracy",
    "read_audit",
    "read_sheet",
]
