"""Results made by hand, for tests of the page that need no estimator."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np

from dualt.audit import new_sheet
from dualt.issues import LabelIssues
from dualt.results import Notice

CLASSES = tuple("0123456789")
STEP = 3  # the flagged examples are the rows 0, 3, 6, ...


def pair_noise(n_classes, rate=0.2):
    matrix = np.eye(n_classes) * (1 - rate)
    matrix[np.arange(n_classes), (np.arange(n_classes) + 1) % n_classes] += 0.75 * rate
    matrix[np.arange(n_classes), (np.arange(n_classes) + 2) % n_classes] += 0.25 * rate
    return matrix


@dataclass
class SampleEstimate:
    """What a page reads of a `TransitionEstimate`, with figures that are easy to check."""

    class_names: tuple
    rate: float = 0.2
    estimator: str = "dual-t"
    warnings: tuple = ()
    agreement: float = 0.81
    condition_number: float = 1.7
    noise_rate: float = None
    noise_rates: np.ndarray = None
    transition: np.ndarray = None

    def __post_init__(self):
        n_classes = len(self.class_names)
        self.n_samples = 1000 * n_classes
        self.clean_prior = np.full(n_classes, 1 / n_classes)
        self.transition = pair_noise(n_classes, self.rate) if self.transition is None else self.transition
        self.noise_rates = 1 - np.diagonal(self.transition) if self.noise_rates is None else self.noise_rates
        self.noise_rate = self.rate if self.noise_rate is None else self.noise_rate
        self.fit = SimpleNamespace(rate_interval=(0.19, 0.212), support=None)
        self.doubt = None
        self.audit = None
        self.diagnostics = SimpleNamespace(agreement=self.agreement, condition_number=self.condition_number)

    def confidence_interval(self, level):
        return np.maximum(0, self.transition - 0.01), np.minimum(1, self.transition + 0.0125)

    def noise_rate_interval(self, level):
        return self.noise_rate - 0.01, self.noise_rate + 0.012


def sample_issues(n_rows=40, names=CLASSES, *, by_pair=None, given=None, suggested=None, step=STEP):
    """Return issues of which each `step`-th example is flagged, most suspect first."""
    rng = np.random.default_rng(0)
    n_classes = len(names)
    index = np.arange(n_rows) * step
    given = rng.integers(0, n_classes, n_rows) if given is None else given
    suspect = np.sort(rng.uniform(0, 0.5, n_rows))
    labels, better, right, certainty, is_issue = (
        np.full(max(1, n_rows * step), value) for value in (0, 0, 1.0, 1.0, False)
    )
    labels[index], better[index] = given, (given - 1) % n_classes if suggested is None else suggested
    right[index], certainty[index], is_issue[index] = suspect, 1 - suspect, True
    transition = pair_noise(n_classes)
    by_pair = 1000 * transition.T if by_pair is None else by_pair
    return LabelIssues(labels, right, better, certainty, by_pair, is_issue, tuple(names), transition, None)


def report(n_rows=40, names=CLASSES, texts=None, *, issues=None, title="Label report", **changes):
    """Return the arguments of `render_report`; the changes are those of the estimate."""
    return {
        "estimate": SampleEstimate(tuple(names), **changes),
        "issues": sample_issues(n_rows, names) if issues is None else issues,
        "texts": texts,
        "title": title,
    }


def with_ids(arguments, ids):
    """Return the arguments of `render_report` with a name for every row."""
    return arguments | {"issues": replace(arguments["issues"], ids=ids)}


def sheet_of(rows, labels):
    """Return the empty sheet of an audit of these rows."""
    return new_sheet(np.array(rows), labels)


def flagged(arguments):
    """Return row numbers, given labels and suggestions of the list to review."""
    issues = arguments["issues"]
    return SimpleNamespace(
        index=issues.indices, given=issues.given[issues.indices], suggested=issues.suggested[issues.indices]
    )


def tally(page):
    return page.locator(".progress span").first.inner_text()


def marks(page):
    return page.locator(".list .mark").all_inner_texts()


def example(page):
    return int(page.locator(".card .head span").first.inner_text().removeprefix("Example "))


def sieve(page, name):
    return page.locator(".tools select").nth(("Group", "Given", "Suggested", "Show").index(name))


def downloaded(page, tmp_path):
    with page.expect_download() as event:
        page.get_by_role("button", name="Download corrected labels").click()
    path = tmp_path / event.value.suggested_filename
    event.value.save_as(path)
    return path


def texts(n_rows, step=STEP):
    return [f"the text of example {row}" for row in range(n_rows * step)]


def remarks():
    return (Notice("in-sample", "The classifier agrees with 99% of the labels.", "Use out-of-fold probabilities."),)
