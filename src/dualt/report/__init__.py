"""One self-contained HTML page: the finding, its pictures, and the suspect labels to review."""

from dualt.report.page import render_report, write_report
from dualt.report.previews import image_previews

__all__ = ["image_previews", "render_report", "write_report"]
