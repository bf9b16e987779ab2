import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from report_samples import CLASSES, remarks, report, sample_issues

from dualt.errors import FileError
from dualt.report import render_report, write_report
from dualt.results import Notice

HOSTILE = ["<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", '"onload="x', "\u2028<!--", "{{ 1 }}"]


class Reader(HTMLParser):
    """Collects the elements and the visible text of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text, self.inside = [], "", []
        self.scripts = {}
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.inside = [tag, dict(attrs).get("id", tag)]

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self.inside = []

    def handle_data(self, text):
        if self.inside:
            self.scripts[self.inside[1]] = self.scripts.get(self.inside[1], "") + text
        else:
            self.text += text

    def words(self):
        return re.sub(r"\s+", " ", self.text)


def test_headline_confusions_and_advice_are_in_plain_words():
    words = Reader(render_report(**report(warnings=remarks()))).words()
    assert "20 % of the labels are wrong" in words
    assert "Probably wrong 40 another class is likelier Doubtful 0" in words
    assert "given 1, should be 0: about 150" in words
    assert "1 thing to know before you rely on it" in words
    assert "Use out-of-fold probabilities." in words


@pytest.mark.parametrize("text", HOSTILE)
def test_every_text_is_escaped(text):
    names = [text, *CLASSES[1:]]
    notices = (Notice("code", text, text),)
    data = report(names=names, title=text, estimator=text, warnings=notices)
    page = Reader(render_report(**data))
    plain = Reader(render_report(**report(warnings=remarks())))
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert not {name for _, attributes in page.tags for name in attributes if name.startswith("on")}
    assert page.text.count(text) >= 5
    assert json.loads(page.scripts["numbers"])["names"][0] == text


def test_numbers_cannot_leave_their_script_element():
    page = Reader(render_report(**report(names=HOSTILE)))
    assert not set("<>&\u2028\u2029") & set(page.scripts["numbers"])
    assert json.loads(page.scripts["numbers"])["names"] == HOSTILE


def test_a_lone_surrogate_does_not_stop_the_page(tmp_path):
    write_report(tmp_path / "page.html", **report(names=["\ud800", *CLASSES[1:]]))
    assert (tmp_path / "page.html").read_text(encoding="utf-8").endswith("</html>")


def test_the_policy_allows_only_what_is_in_the_page():
    page = Reader(render_report(**report()))
    policy = next(a["content"] for _, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    for name in ("script", "style"):
        digest = hashlib.sha256(page.scripts[name].encode()).digest()
        assert f"{name}-src 'sha256-{base64.b64encode(digest).decode()}';" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not [a for _, a in page.tags if "style" in a]


def test_nothing_is_loaded_from_elsewhere():
    page = render_report(**report())
    links = [a.get("href") or a.get("src") for _, a in Reader(page).tags if "href" in a or "src" in a]
    assert {link[0] for link in links} <= {"#", "d"}
    assert "http:" not in page
    assert "https:" not in page
    assert "innerHTML" not in page
    assert "eval(" not in page


def test_a_large_matrix_is_cut_to_the_most_confused_classes():
    names = [str(i) for i in range(200)]
    counts = np.zeros((200, 200))
    counts[150, 160], counts[7, 199] = 50.0, 40.0
    page = Reader(render_report(**report(names=names, issues=sample_issues(5, names, by_pair=counts))))
    matrix = json.loads(page.scripts["numbers"])["matrix"]
    assert len(matrix["classes"]) == 30
    assert {150, 160, 7, 199} <= set(matrix["classes"])
    assert matrix["classes"] == sorted(matrix["classes"])
    np.testing.assert_allclose(np.sum(matrix["value"], axis=1) + matrix["others"], 1)


def test_a_page_is_written_whole_or_not_at_all(tmp_path):
    target = tmp_path / "report.html"
    target.write_text("before")
    with pytest.raises(ValueError, match="JSON compliant"):
        write_report(target, **report(transition=np.full((10, 10), np.nan)))
    assert target.read_text() == "before"
    with pytest.raises(FileError, match="does not exist"):
        write_report(tmp_path / "nowhere" / "report.html", **report())
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
