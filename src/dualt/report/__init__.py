"""One self-contained HTML page: the finding, its pictures, and the suspect labels to review."""

from dualt.report.convert import listed, report_data
from dualt.report.data import Method, Remark, ReportData, ReviewList
from dualt.report.page import render_report, write_report
from dualt.report.previews import Previews, image_previews, text_previews

__all__ = [
    "Method",
    "Previews",
    "Remark",
    "ReportData",
    "ReviewList",
    "image_previews",
    "listed",
    "render_report",
    "report_data",
    "text_previews",
    "write_report",
]
