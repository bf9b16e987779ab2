"""One self-contained HTML page: the finding, its pictures, and the suspect labels to review."""

from dualt.report.page import render_report, write_report
from dualt.report.previews import Previews, image_previews, text_previews
from dualt.report.shown import listed

__all__ = ["Previews", "image_previews", "listed", "render_report", "text_previews", "write_report"]
