"""What verified labels say: which to check, the file to fill in, and how they correct an estimate."""

from dualt.audit.sheet import draw_audit, read_audit, save_audit
from dualt.audit.verified import blend_verified, check_random_audit

__all__ = ["blend_verified", "check_random_audit", "draw_audit", "read_audit", "save_audit"]
