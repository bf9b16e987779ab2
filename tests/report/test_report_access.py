"""Everybody can read and use the page: contrast, names, wrapping, and what axe-core finds."""

import json
import shutil
import subprocess
import tarfile

import numpy as np
import pytest
from report_samples import CLASSES, SampleEstimate, remarks, report, sheet_of, texts, with_ids

pytestmark = pytest.mark.browser

LONG = ["Dermatofibroma, atypical, of the lower extremities", "Squamous cell carcinoma in situ (Bowen's disease)",
        "Supercalifragilisticexpialidociousnessesdermatitis", "basal"]  # fmt: skip
# Colours of any notation as the browser paints them, and the contrast of WCAG 2.
CONTRASTS = """(nodes) => {
    const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const painted = (colour) => {
        pen.fillStyle = colour;
        pen.fillRect(0, 0, 1, 1);
        return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const linear = (byte) => (byte / 255 <= 0.04045 ? byte / 255 / 12.92 : ((byte / 255 + 0.055) / 1.055) ** 2.4);
    const weights = [0.2126, 0.7152, 0.0722];
    const luminance = (colour) => painted(colour).reduce((sum, byte, i) => sum + weights[i] * linear(byte), 0);
    return nodes.map((node) => {
        const { color, backgroundColor } = getComputedStyle(node);
        const [dark, light] = [luminance(color), luminance(backgroundColor)].sort((a, b) => a - b);
        return (light + 0.05) / (dark + 0.05);
    });
}"""


def of_all_tones(n_classes=11):
    """Return an estimate whose cells take all the colours of the scale."""
    matrix = np.geomspace(1e-4, 0.06, n_classes * n_classes).reshape(n_classes, n_classes)
    matrix[np.diag_indices(n_classes)] = 0
    matrix[np.diag_indices(n_classes)] = 1 - matrix.sum(axis=1)
    return SampleEstimate(tuple(map(str, range(n_classes))), transition=matrix)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_cell_of_the_matrix_can_be_read(open_report, scheme):
    page = open_report({"estimate": of_all_tones()}, color_scheme=scheme)
    contrasts = page.locator("#heatmap td").evaluate_all(CONTRASTS)
    assert len(contrasts) == 121
    assert min(contrasts) >= 4.5


def test_long_names_are_whole_where_decisions_are_made(open_report):
    page = open_report(report(40, LONG), viewport={"width": 390, "height": 844})
    cut = page.locator(".card dd, .card button, .confusions li").evaluate_all(
        "(nodes) => nodes.filter((node) => node.scrollWidth > node.clientWidth).map((node) => node.innerText)"
    )
    assert cut == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    suggested = page.locator(".card dd").nth(1).locator("bdi")
    assert suggested.inner_text() in LONG


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """The source of axe-core, or a skip that says why there is none."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm, which brings axe-core, is not installed")
    folder = tmp_path_factory.mktemp("axe")
    packed = subprocess.run(
        [npm, "pack", "axe-core@4", "--silent"], check=False, cwd=folder, capture_output=True, text=True, timeout=120
    )
    archives = list(folder.glob("axe-core-*.tgz"))
    if packed.returncode or not archives:
        pytest.skip(f"npm cannot bring axe-core: {packed.stderr[-200:]}")
    with tarfile.open(archives[0]) as archive:
        return archive.extractfile("package/axe.min.js").read().decode()


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("names", [CLASSES, LONG, [f"class {i}" for i in range(40)]], ids=["digits", "long", "many"])
def test_axe_finds_nothing_serious(open_report, axe, names, scheme, width):
    data = report(60, names, texts(60), warnings=remarks())
    data = with_ids(data, [f"sku-{row}" for row in range(len(data["issues"]))])
    page = open_report(data, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.keyboard.press("j")
    page.keyboard.press("a")
    page.keyboard.press("x")
    if len(names) > 12:
        page.keyboard.press("/")
    assert not (grave := serious(page, axe)), json.dumps(grave, indent=1)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_on_a_page_of_an_audit(open_report, axe, scheme):
    data = report(60, LONG, texts(60)) | {"notes": {0: ["ann: basal"]}}
    data |= {"audit": sheet_of(np.arange(0, 60, 7), data["issues"].given)}
    page = open_report(data, color_scheme=scheme)
    page.keyboard.press("1")
    page.keyboard.press("k")
    assert page.locator(".notes").inner_text() == "ann: basal"
    assert not (grave := serious(page, axe)), json.dumps(grave, indent=1)


def serious(page, axe):
    """Return what axe-core finds that is serious or critical."""
    page.evaluate(axe)
    violations = page.evaluate("axe.run().then(({ violations }) => violations)")
    return [each for each in violations if each["impact"] in ("serious", "critical")]
