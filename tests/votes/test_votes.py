"""Votes of every shape, and what is said of them."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

import dualt
from dualt.errors import InputError, LabelsError, ProbabilitiesError
from dualt.votes.result import _wrong_in_all


def people(seed, n_items=300):
    """Return a long table of votes of people of known quality; `attrs["truth"]` has the class of each item."""
    rng = np.random.default_rng(seed)
    classes = np.array(["bird", "cat", "dog"])
    truth = rng.choice(classes, n_items)
    frames = []
    for name, right, share in (("careful", 0.92, 0.9), ("hasty", 0.7, 1.0), ("tired", 0.65, 0.8), ("slow", 0.85, 0.7)):
        items = np.flatnonzero(rng.random(n_items) < share)
        wrong = np.where(truth[items] == "cat", "dog", "cat")
        label = np.where(rng.random(len(items)) < right, truth[items], wrong)
        frames.append(pd.DataFrame({"item": items, "annotator": name, "label": label}))
    long = pd.concat(frames, ignore_index=True)
    long.attrs["truth"] = truth.tolist()
    return long


@pytest.fixture(scope="module")
def long():
    return people(0)


def same(a, b):
    order = pd.Series(range(len(b.items)), index=pd.Index(b.items).astype(str))
    rows = order[[str(item) for item in a.items]]
    np.testing.assert_allclose(a.posterior, b.posterior[rows], atol=1e-8)


def test_every_shape_of_votes_gives_the_same_consensus(long, tmp_path):
    plain = dualt.combine_votes(long)
    wide = long.pivot(index="item", columns="annotator", values="label")
    long.to_csv(tmp_path / "votes.csv", index=False)
    renamed = long.rename(columns={"item": "n", "annotator": "by", "label": "said"})
    for other in (
        dualt.combine_votes(wide),
        dualt.combine_votes(pl.from_pandas(long)),
        dualt.combine_votes(list(long.itertuples(index=False, name=None))),
        dualt.combine_votes({name: long[name].tolist() for name in long}),
        dualt.combine_votes(tmp_path / "votes.csv"),
        dualt.combine_votes(renamed, item="n", annotator="by", label="said"),
        dualt.combine_votes(long.sample(frac=1, random_state=0)),
    ):
        same(other, plain)
    assert plain.class_names == ("bird", "cat", "dog")
    array = wide.to_numpy()
    same(dualt.combine_votes(array[:, :3].tolist()), dualt.combine_votes(wide.iloc[:, :3]))
    np.testing.assert_allclose(dualt.combine_votes(array).posterior, dualt.combine_votes(wide).posterior)
    codes = np.where(pd.isna(array), -1, pd.Categorical(array.ravel()).codes.reshape(array.shape))
    np.testing.assert_allclose(dualt.combine_votes(codes.astype(int)).posterior, dualt.combine_votes(wide).posterior)


def test_a_wide_table_may_have_a_column_of_items(long, tmp_path):
    """As a file has, where pandas leaves the column of its index without a name."""
    wide = long.pivot(index="item", columns="annotator", values="label")
    plain = dualt.combine_votes(wide)
    same(dualt.combine_votes(wide.reset_index()), plain)
    same(dualt.combine_votes(wide.reset_index(names="sku"), item="sku"), plain)
    for name in ("", "id"):
        wide.to_csv(tmp_path / "wide.csv", index_label=name)
        same(dualt.combine_votes(tmp_path / "wide.csv"), plain)
    wide.reset_index(names="id").to_csv(tmp_path / "wide.csv")
    same(dualt.combine_votes(tmp_path / "wide.csv"), plain)
    with pytest.raises(InputError, match="Expected a column 'ean', got sku, careful"):
        dualt.combine_votes(wide.reset_index(names="sku"), item="ean")
    with pytest.raises(InputError, match="Expected a column 'label', got item, annotator, said"):
        dualt.combine_votes(long.rename(columns={"label": "said"}))


def test_exports_of_labelling_tools_are_votes(tmp_path, long):
    some = long[long.item < 30]
    plain = dualt.combine_votes(some)
    label_studio, argilla, prodigy = [], [], []
    for item, group in some.groupby("item"):
        votes = list(zip(group.annotator, group.label, strict=True))
        label_studio.append({
            "id": item, "data": {"text": f"text {item}"},
            "annotations": [
                {"completed_by": {"email": who}, "result": [{"type": "choices", "value": {"choices": [label]}}]}
                for who, label in votes
            ] + [{"completed_by": 7, "was_cancelled": True, "result": []}],
        })  # fmt: skip
        responses = [{"user_id": who, "value": label, "status": "submitted"} for who, label in votes]
        argilla.append({"id": item, "fields": {"text": "…"}, "responses": {"label": responses}})
        for who, label in votes:
            choice = {"_input_hash": item, "_annotator_id": who, "answer": "accept", "accept": [label], "text": "…"}
            prodigy.append(choice)
    prodigy.append({"_input_hash": 0, "_annotator_id": "zoe", "answer": "ignore", "accept": []})
    (tmp_path / "studio.json").write_text(json.dumps(label_studio))
    (tmp_path / "argilla.json").write_text(json.dumps(argilla))
    (tmp_path / "prodigy.jsonl").write_text("\n".join(map(json.dumps, prodigy)))
    for name in ("studio.json", "argilla.json", "prodigy.jsonl"):
        same(dualt.combine_votes(tmp_path / name), plain)
    assert dualt.votes.read_votes(tmp_path / "studio.json").text[0] == "text 0"


def test_numbers_in_a_file_are_the_same_votes_as_in_memory(tmp_path, caplog):
    """A data frame with gaps writes whole numbers as floats; below zero somebody abstained."""
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.integers(0, 3, (60, 3)), columns=[*"abc"])
    wide["b"] = wide["b"].where(wide.index % 4 > 0)
    wide.assign(c=wide["c"].where(wide.index % 5 > 0, -1)).to_csv(tmp_path / "wide.csv", index_label="id")
    long = wide.reset_index(names="id").melt("id", var_name="worker", value_name="label")
    long.to_csv(tmp_path / "long.csv", index=False)
    plain = dualt.combine_votes(wide.assign(c=wide["c"].where(wide.index % 5 > 0)))
    read = pd.read_csv(tmp_path / "wide.csv", dtype=str, keep_default_na=False, index_col="id")
    same(dualt.combine_votes(read), plain)
    assert dualt.combine_votes(tmp_path / "long.csv").class_names == ("0", "1", "2")
    assert not caplog.messages
    dualt.combine_votes(long.assign(label=long["label"] - 1))
    n_below = (long["label"] == 0).sum()
    assert caplog.messages == [f"{n_below} votes below zero are left out: such numbers are no votes."]


def test_a_question_of_several_is_chosen_by_its_name(tmp_path):
    """Label Studio has a result per control; Argilla 1 a response per person, Argilla 2 also as flat columns."""
    said = {"ann": ["tech", "yes"], "bob": ["bill", "no"]}
    controls = [{"completed_by": who, "result": [
        {"from_name": name, "value": {"choices": [one]}} for name, one in zip(("queue", "urgent"), both, strict=True)
    ] + [{"from_name": "note", "value": {"text": ["…"]}}]} for who, both in said.items()]  # fmt: skip
    rated = [{"completed_by": who, "result": [{"from_name": "stars", "value": {"rating": stars}}]}
             for who, stars in (("ann", 4), ("bob", 5))]  # fmt: skip
    (tmp_path / "export.json").write_text(json.dumps([{"id": 0, "data": {}, "annotations": rated}]))
    assert dualt.combine_votes(tmp_path / "export.json").class_names == ("4", "5")
    people = [{"user_id": who, "values": {"queue": {"value": both[0]}, "urgent": {"value": both[1]}}}
              for who, both in said.items()]  # fmt: skip
    flat = {"queue.responses": ["tech", "bill"], "queue.responses.users": [*said], "urgent.responses": ["yes", "no"],
            "urgent.responses.users": [*said], "urgent.responses.status": ["submitted", "draft"]}  # fmt: skip
    for record in (
        {"id": 0, "data": {"text": "…"}, "annotations": controls},
        {"id": None, "external_id": 0, "fields": {"text": "…"}, "responses": people},
        {"id": 0, "text": "…", "queue.suggestion": None, **flat},
    ):
        (tmp_path / "export.json").write_text(json.dumps([record]))
        with pytest.raises(InputError, match=r"one question in .*, got queue, urgent. Name one"):
            dualt.combine_votes(tmp_path / "export.json")
        found = dualt.votes.read_votes(tmp_path / "export.json", "queue")
        assert found[["item", "annotator", "queue", "text"]].to_numpy().tolist() == [
            [0, "ann", "tech", "…"], [0, "bob", "bill", "…"]
        ]  # fmt: skip
        assert dualt.combine_votes(tmp_path / "export.json", label="queue").class_names == ("bill", "tech")


def test_a_table_with_the_words_of_a_tool_stays_a_table(tmp_path):
    """Judged answers, with their text in a column that Prodigy and Argilla use otherwise."""
    rows = [{"item": 0, "annotator": who, "label": said, "answer": "Paris", "responses": ["a", "b"], "annotations": 2}
            for who, said in (("ann", "pass"), ("bob", "fail"))]  # fmt: skip
    (tmp_path / "votes.json").write_text(json.dumps(rows))
    assert dualt.combine_votes(tmp_path / "votes.json").class_names == ("fail", "pass")
    with pytest.raises(InputError, match=r"names or numbers as items, .* and votes, got \['a', 'b'\]\."):
        dualt.combine_votes(tmp_path / "votes.json", label="responses")
    (tmp_path / "votes.json").write_text(json.dumps([{"data": {}, "annotations": [1, 2]}]))
    with pytest.raises(InputError, match=r"Expected tasks in .*votes\.json as a labelling tool exports them"):
        dualt.combine_votes(tmp_path / "votes.json")


def test_what_prodigy_rejects_and_what_is_shown_of_a_task(tmp_path):
    """Options that are rejected are no vote; one class that is rejected is a vote against it."""
    task = {"text": "…", "price": 2, "meta": {"a": 1}, "_view_id": "choice", "_annotator_id": "ann", "answer": "reject"}
    rows = [task | {"_input_hash": 0, "accept": ["cat"]}, task | {"_input_hash": 1, "label": "cat"}]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = dualt.votes.read_votes(tmp_path / "p.jsonl")
    assert found.label.fillna("").tolist() == ["", "not cat"]
    assert sorted(found) == ["annotator", "item", "label", "price", "text"]


def test_probabilities_are_matched_by_index_and_columns(long):
    items, classes = sorted(long.item.unique()), ["dog", "bird", "cat"]
    probs = pd.DataFrame(np.random.default_rng(0).dirichlet([1, 1, 1], len(items)), items, classes)
    votes = dualt.combine_votes(long, probs)
    shuffled = probs.sample(frac=1, random_state=1)
    other = dualt.combine_votes(long, shuffled)
    same(other, votes)
    assert votes.class_names == ("dog", "bird", "cat")
    with_array = dualt.combine_votes(long, probs.to_numpy(), classes=classes)
    shift = np.minimum(probs, 1 - probs).min(axis=1).to_numpy()[:, None] * np.array([1, -1, 0])
    same(dualt.combine_votes(long, [probs + shift, probs - shift]), votes)  # several models count by their mean
    same(with_array, votes)
    as_text = long.sample(frac=1, random_state=0).astype({"item": str})
    same(dualt.combine_votes(as_text, probs.to_numpy(), classes=classes), votes)
    with pytest.raises(LabelsError, match=r"2 classes, one per column.*got 3"):
        dualt.combine_votes(long, probs.to_numpy()[:, :2])
    with pytest.raises(InputError, match="given items, got one on 7"):
        dualt.combine_votes(long, probs.drop(index=7))
    with pytest.raises(ProbabilitiesError, match="row 0"):
        dualt.combine_votes(long, probs.assign(dog=np.nan))
    some = np.full((2, 4), 0.25)
    assert dualt.combine_votes([[0, 3], [3, 3]], some).class_names == ("0", "1", "2", "3")
    with pytest.raises(LabelsError, match=r"4 classes.*got 2 \(0, 4\)"):
        dualt.combine_votes([[0, 4], [4, 4]], some)


def test_a_single_vote_is_not_claimed_to_be_wrong():
    disputed = [["yes", "no"], ["no", "yes"]] * 20
    votes = dualt.combine_votes(disputed + [["yes", None], [None, "no"]] * 80)
    assert votes.noise_rate_interval[0] <= len(disputed) / len(votes.items) < votes.noise_rate


def test_verified_items_bound_the_rate_and_settled_ones_do_not(long):
    truth = np.array(long.attrs["truth"])
    plain = dualt.combine_votes(long)
    assert plain.noise_rate_interval[1] == 1
    assert plain.annotators.low.isna().all()
    for seed in range(20):
        drawn = np.random.default_rng(seed).choice(len(truth), 100, replace=False)
        votes = dualt.combine_votes(long, verified=pd.Series(truth[drawn], drawn))
        low, high = votes.noise_rate_interval
        assert low <= votes.noise_rate <= high < 0.5
    assert (votes.annotators.low <= votes.annotators.quality).all()
    assert (votes.annotators.quality <= votes.annotators.high).all()
    assert (dualt.combine_votes(long, verified=dict(enumerate(truth))).consensus.transition == np.eye(3)).all()
    twice = dualt.combine_votes(long, verified=([*drawn, *drawn], [*truth[drawn], *truth[drawn]]))
    assert twice.noise_rate_interval == votes.noise_rate_interval, "an item that comes again counts once"
    settled = dualt.combine_votes(long, settled={item: truth[item] for item in plain.next_items(10)})
    assert settled.noise_rate_interval[1] == 1
    with pytest.raises(InputError, match=r"size.* at least 1"):
        settled.next_items(0)
    assert not set(settled.next_items(50)) & set(plain.next_items(10))


def test_one_error_in_an_audit_claims_hardly_more_than_that_one():
    """Of four wrong labels in 2,000 an audit of 100 meets one in a fifth of the draws; three are left."""
    errors, truth = np.arange(2000) % 500 == 0, np.arange(2000) % 2
    said = np.where(errors, 1 - truth, truth)
    low, high = dualt.combine_votes(np.c_[said, said], verified=(np.arange(100), truth[:100])).noise_rate_interval
    assert low <= 3 / 2000 < high


@pytest.mark.parametrize(("n_drawn", "n_items"), [(20, 60), (100, 101), (30, 30)])
def test_the_audits_interval_holds_for_any_number_of_errors(n_drawn, n_items):
    ends = np.array([_wrong_in_all(wrong, n_drawn, n_items) for wrong in range(n_drawn + 1)])
    for total in range(n_items + 1):
        chance = hypergeom.pmf(np.arange(n_drawn + 1), n_items, total, n_drawn)
        assert max(chance @ (ends[:, 0] > total), chance @ (ends[:, 1] < total)) <= 0.025 + 1e-9


def test_annotators_without_a_checked_error_may_always_be_right(long):
    truth, drawn = pd.Series(long.attrs["truth"]), [*range(0, 300, 4)]
    right = pd.DataFrame({"item": truth.index, "annotator": "right", "label": truth})
    wrong = right.assign(annotator="wrong", label=truth.map({"cat": "dog", "dog": "bird", "bird": "cat"}))
    votes = dualt.combine_votes(pd.concat([long, right, wrong]), verified=truth[drawn])
    found = votes.annotators.set_index("name")
    assert (found.high["right"], found.low["wrong"]) == (1, 0)


def test_the_matrix_of_one_judge_holds_after_an_audit():
    """It rests on as many votes as the audit is worth: with all 2,000 it held in 4 of 10 draws."""
    rng, holds = np.random.default_rng(0), []
    for _ in range(20):
        good = rng.random(2000) < 0.7
        judge, drawn = rng.random(2000) < np.where(good, 0.95, 0.35), rng.choice(2000, 100, replace=False)
        votes = dualt.combine_votes(1 * judge[:, None], verified=(drawn, 1 * good[drawn]))
        low, high = (end[:, 1] for end in votes.transition[0].confidence_interval())
        holds += [(low <= passed) & (passed <= high) for passed in [[judge[~good].mean(), judge[good].mean()]]]
        assert votes.annotators.quality[0] == pytest.approx(1 - votes.noise_rate, abs=0.03)
    assert np.mean(holds) >= 0.9


def test_what_is_said_of_annotators(long):
    truth, votes = np.array(long.attrs["truth"]), dualt.combine_votes(long)
    quality = votes.annotators.set_index("name").quality
    right = (long.label == truth[long.item]).groupby(long.annotator).mean()
    assert (quality - right[quality.index]).abs().max() < 0.1
    assert votes.annotators.worst_confusion.str.fullmatch(r"(cat → dog|dog → cat|bird → cat) \(\d+%\)").all()
    implied = votes.consensus.fit.support @ votes.consensus.transition
    np.testing.assert_allclose(implied, np.bincount(votes.codes), atol=2)
    assert list(votes.transition) == list(quality.index)
    for name, estimate in votes.transition.items():
        assert np.allclose(estimate.transition.sum(axis=1), 1)
        assert abs((1 - estimate.noise_rate) - right[name]) < 0.15
    assert votes.consensus.noise_rate == pytest.approx(votes.noise_rate, abs=0.02)
    issues = dualt.find_label_issues(votes.posterior, votes.labels, votes.consensus)
    assert len(issues.probability_right) == len(votes.items)
    low, high = votes.common.confidence_interval()
    assert ((low <= votes.common.transition) & (votes.common.transition <= high)).all()
    frame = votes.to_frame()
    assert frame.columns.tolist() == ["item", "label", "probability", "votes", "agreement"]
    assert frame.agreement.between(0, 1).all()
    assert "annotators" in repr(votes)


def codes(votes):
    return {notice.code for notice in votes.warnings}


@given(seed=st.integers(0, 50))
def test_a_duplicated_annotator_is_found(seed):
    long = people(seed)
    assert "copies" not in codes(dualt.combine_votes(long))
    copied = long[long.annotator == "hasty"].assign(annotator="copy")
    notice = next(n for n in dualt.combine_votes(pd.concat([long, copied])).warnings if n.code == "copies")
    assert notice.message.startswith("Annotators who agree more than their quality explains: copy and hasty (")


def test_annotators_who_agree_because_they_are_right_are_no_copies():
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=400)
    right = rng.random((400, 4)) < [0.98, 0.98, 0.75, 0.7]
    assert not codes(dualt.combine_votes(np.where(right, truth[:, None], rng.integers(3, size=(400, 4)))))
    rules = np.where(right & (truth[:, None] == [0, 1, 2, 0]), truth[:, None], -1)  # each votes for one class
    assert "one-class" not in codes(dualt.combine_votes(rules))


def test_annotators_at_chance_or_with_one_class_are_named(long):
    rng = np.random.default_rng(1)
    items = np.arange(len(long.attrs["truth"]))
    said = rng.choice(["bird", "cat", "dog"], len(items))
    guesses = pd.DataFrame({"item": items, "annotator": "dice", "label": said})
    votes = dualt.combine_votes(pd.concat([long, guesses, guesses.assign(annotator="wall", label="cat")]))
    notices = {notice.code: notice.message for notice in votes.warnings}
    assert "dice" in notices["at-chance"]
    assert "wall" in notices["one-class"]
    plain = dualt.combine_votes(long)
    assert (votes.labels == plain.labels).mean() > 0.97
    repeats = 0.1 * np.eye(3)[plain.codes] + 0.3
    assert codes(dualt.combine_votes(long, pd.DataFrame(repeats, plain.items, plain.class_names))) == {"temperature"}


def test_who_finds_a_rare_class_does_better_than_guessing():
    rng = np.random.default_rng(0)
    truth = np.arange(800) % 50 == 0
    right = rng.random((800, 5)) < np.where(truth, 0.7, 0.93)[:, None]
    votes = np.column_stack([right == truth[:, None], rng.random(800) < 0.3]).astype(int)
    (notice,) = dualt.combine_votes(votes).warnings
    assert notice.message == "Not clearly better than guessing: 5."


def test_with_rules_and_a_classifier_no_rate_is_claimed_until_some_are_verified():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=1000)
    rules = np.where(rng.random((1000, 4)) < np.where(truth[:, None] == [0, 1, 0, 1], 0.6, 0.2), [0, 1, 0, 1], -1)
    echo = 0.3 * np.eye(2)[dualt.combine_votes(rules).codes] + 0.35
    alone, together = dualt.combine_votes(rules), dualt.combine_votes(rules, echo)
    verified = dualt.combine_votes(rules, echo, verified=(np.arange(0, 1000, 10), truth[::10]))
    assert "echo" in codes(together)
    assert {*alone.annotators.worst_confusion} == {"1 → 0", "0 → 1"}, "without a percentage, which is that of all rules"
    low, high = verified.transition[0].confidence_interval()
    assert (high - low).max() < 0.5, "a rule has the matrix of all votes, and its interval"
    assert "weak-classifier" not in codes(together.consensus), "nobody is told to train a better one"
    assert not {"echo", "temperature"} & (codes(alone) | codes(verified))
    assert together.consensus.summary == (
        "No noise rate can be claimed: most votes are by rules, whose errors a classifier may repeat."
        " At least 6 % of the consensus looks wrong."
    )
    assert alone.consensus.doubt is verified.consensus.doubt is None
    assert alone.consensus.summary.startswith("About")
    assert "interval" in verified.consensus.summary


def test_what_cross_fit_returns_is_a_classifier(long):
    truth = np.array(long.attrs["truth"])
    features = np.random.default_rng(0).normal(size=(300, 2)) + pd.get_dummies(truth).to_numpy()[:, :2]
    frame = pd.DataFrame(features, [f"x{row}" for row in range(300)])
    out_of_fold = dualt.cross_fit(frame, truth, quick=True)
    renamed = long.assign(item="x" + long.item.astype(str))
    same(dualt.combine_votes(renamed, out_of_fold), dualt.combine_votes(renamed, out_of_fold.to_frame()))


def test_single_votes_ties_and_repeated_votes():
    votes = dualt.combine_votes([("a", "ann", "x"), ("a", "bob", "y"), ("b", "ann", "x"), ("b", "bob", "x")])
    assert votes.labels[1] == "x"
    assert votes.probability[0] < votes.probability[1]
    once = dualt.combine_votes([*((n, who, n % 2) for n in range(9) for who in ("ann", "bob")), (0, "eve", 0)])
    assert once.annotators.set_index("name").votes["eve"] == 1
    again = dualt.combine_votes([(0, "ann", "x"), (0, "ann", "y"), (0, "bob", "y"), (1, "bob", "x"), (1, "ann", "x")])
    assert codes(again) == {"repeated"}
    assert again.labels.tolist() == ["y", "x"]


@pytest.mark.parametrize("form", ["{}.0", "{},0"])
def test_grades_with_decimals_are_the_same_grades(long, form):
    """A table with gaps, or one in German, has decimals; a person who fills in an audit may write none."""
    grades = long.label.map({"bird": 3, "cat": 5, "dog": 10})
    written = long.assign(label=grades.map(form.format))
    alone, named = dualt.combine_votes(long.assign(label=grades)), dualt.combine_votes(long)
    np.testing.assert_array_equal(alone.consensus.transition, named.consensus.transition)
    plain = dualt.combine_votes(long.assign(label=grades), verified={0: 5, 1: 10})
    for known in ({0: 5, 1: 10}, {0: "5", 1: "10"}, {0: "5.0", 1: "10.0"}, {0: "5,0", 1: "10,0"}, {0: 5.0, 1: 10.0}):
        votes = dualt.combine_votes(written, verified=known)
        assert votes.class_names == ("3", "5", "10")
        np.testing.assert_array_equal(votes.posterior, plain.posterior)
    halves = written.assign(label=written.label.replace(form.format(10), "4.5"))
    assert dualt.combine_votes(halves, verified={0: form.format(5)}).labels[0] == form.format(5)


def test_the_consensus_is_as_wrong_where_a_class_wins_no_item():
    """Label shares and matrix imply no item of such a class, but the votes do."""
    votes = dualt.combine_votes({"ann": [*"xxxy"] * 10, "bob": ["x"] * 40})
    assert {*votes.labels} == {"x"}
    assert votes.noise_rate > 0.02
    assert votes.consensus.noise_rate == pytest.approx(votes.noise_rate)
    assert votes.consensus.summary.startswith(f"About {100 * votes.noise_rate:.0f} % of the consensus looks wrong (at")


def test_names_that_differ_by_case_or_blanks_only_are_named():
    (notice,) = dualt.combine_votes([["Cat", "cat "], ["dog", "dog"], ["Cat", "n/a"]]).warnings
    assert "missing votes: 'Cat', 'cat '; 'n/a'." in notice.message
    rows = [("x1", "ann", "cat"), (" x1", "ann ", "cat"), ("X1", "Bob", "dog"), ("x1", "Bob", "dog")]
    people, items = dualt.combine_votes(rows).warnings
    assert people.message == "Annotators that differ only by case, accents or blanks: 'ann', 'ann '."
    assert items.message == "Items that differ only by blanks: ' x1'."


def test_what_cannot_be_combined_is_refused(long, tmp_path):
    (tmp_path / "rows.json").write_text("[1, 2]")
    with pytest.raises(InputError, match=r"a list of tasks in .*rows\.json"):
        dualt.combine_votes(tmp_path / "rows.json")
    one = long.drop_duplicates("item")
    with pytest.raises(InputError, match=r"got one annotator on each.*probs .*verified "):
        dualt.combine_votes(one)
    assert dualt.combine_votes(one, verified={0: "cat", 1: "dog"}).labels[0] == "cat"
    with pytest.raises(LabelsError, match=r"got 'bird', the vote of \w+ on item"):
        dualt.combine_votes(long, classes=["cat", "dog"])
    with pytest.raises(InputError, match=r"Expected a column 'who', got item"):
        dualt.combine_votes(long, annotator="who")
    judged = pd.DataFrame({"ann": [*"xy"] * 10, "bob": [*"xxyy"] * 5, "model": [*"XY"] * 10})
    with pytest.raises(InputError, match=r"'model', whose values \('X', 'Y'\) are in no other column.*classes alike"):
        dualt.combine_votes(judged)
    with pytest.raises(InputError, match="'sku', whose values"):
        dualt.combine_votes(pd.DataFrame({"ann": [*"xy"] * 10, "bob": [*"xy"] * 10, "sku": [*"abcdefghijklmnopqrst"]}))
    small = pd.DataFrame({"text": ["good", "bad", "so so"], "ann": [*"xyx"], "bob": [*"xyy"]})
    with pytest.raises(InputError, match=r"'text', whose values .*: texts by --text"):
        dualt.combine_votes(small)
    assert dualt.combine_votes(small[["ann", "bob"]].assign(eve=[*"zwx"])).class_names == ("w", "x", "y", "z")
    for column in ("item", "annotator"):
        for nothing in (None, ""):
            nobody = long.astype({column: object})
            nobody.loc[4, column] = nothing
            with pytest.raises(InputError, match=f"Expected an {column} for each vote, got none in {{'item'"):
                dualt.combine_votes(nobody)
    with pytest.raises(InputError, match="items × annotators: All arrays must be of the same length"):
        dualt.combine_votes({"ann": [1, 0], "bob": [1]})
    with pytest.raises(LabelsError, match=r"one class per vote, got .*: multi-label is not supported"):
        dualt.combine_votes([['{"choices":["cat","dog"]}', "cat"], ["dog", "dog"]])
    with pytest.raises(LabelsError, match="at least two classes"):
        dualt.combine_votes([["x", "x"], ["x", None]])
    with pytest.raises(LabelsError, match="at least one vote"):
        dualt.combine_votes([[None, ""], [-1, None]])
    with pytest.raises(LabelsError, match="distinct class names, got 'cat' twice"):
        dualt.combine_votes(long, classes=["bird", "cat", "cat", "dog"])
    with pytest.raises(InputError, match="one class per item in verified, got two for 1"):
        dualt.combine_votes(long, verified=([0, 1, 1], ["cat", "cat", "dog"]))
    with pytest.raises(InputError, match=r"class per item in verified, got 2 items, 1 classes"):
        dualt.combine_votes(long, verified=([0, 1], ["cat"]))
    with pytest.raises(InputError, match=r"as 0, in settled, got 9999\."):
        dualt.combine_votes(long, settled={9999: "cat"})
    with pytest.raises(LabelsError, match=r"bird, cat, dog in verified, got 'cow' for 1\."):
        dualt.combine_votes(long, verified={0: "bird", 1: "cow"})
