"""Names of classes in narrow places of the page: beside what they belong to, and told apart."""

import pytest
from report_samples import report

pytestmark = pytest.mark.browser

DEEP = tuple(
    f"electronics/{kind}/accessories/{part}" for kind in ("phones", "tablets") for part in ("cases", "chargers", "bags")
)


def headings(page):
    """Return what is seen of the rows of the matrix, and the whole name that each has for those who point or listen."""
    cells = page.locator(".heat th[scope=row] bdi")
    seen = [cell.locator("[aria-hidden]") if cell.locator("[aria-hidden]").count() else cell for cell in cells.all()]
    return [text.inner_text() for text in seen], [cell.get_attribute("title") for cell in cells.all()]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (tuple(f"class with a rather long name number {n}" for n in range(12)), [f"class…{n}" for n in range(12)]),
        (DEEP, [f"elect…{kind}…{part}" for kind in ("phone", "table") for part in ("cases", "chargers", "bags")]),
        (("cat", "dog", "a name of its own that is far too long"),) * 2,
        (("class number 10", "class number 11", "class number 12"),) * 2,
        (("منتجات إلكترونية جديدة ألف", "منتجات إلكترونية جديدة باء"), ["منتجا…ألف", "منتجا…باء"]),
    ],
)
def test_names_that_begin_alike_are_told_apart(open_report, names, expected):
    seen, whole = headings(open_report(report(12, names)))
    assert seen == list(expected)
    assert whole == list(names)


def test_names_from_right_to_left_stand_beside_their_arrow(open_report):
    page = open_report(report(12, ("إيجابي", "سلبي", "neutral")))
    for pair in page.locator(".pair").all()[:6]:
        arrow, suggested = (pair.locator(part).bounding_box() for part in ("> span", "> bdi:last-child"))
        assert suggested["x"] - (arrow["x"] + arrow["width"]) < 12
        assert suggested["width"] < 100
