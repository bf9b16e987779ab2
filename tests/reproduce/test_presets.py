"""Presets, profiles and changes; every typo is named."""

from importlib.resources import files

import pytest

from dualt.cli.options import parse_settings
from dualt.errors import InputError, UnknownNameError
from dualt.reproduce import EXPERIMENTS, PROFILES, load_experiment
from dualt.reproduce.experiments import tomllib


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("profile", PROFILES)
def test_every_preset_has_every_profile(name, profile):
    experiment = load_experiment(name, profile)
    assert (experiment.name, experiment.profile) == (name, profile)
    assert set(experiment.datasets) <= experiment.network.keys()
    preset = tomllib.loads((files("dualt.reproduce") / "presets" / f"{name}.toml").read_text(encoding="utf-8"))
    assert {*preset["profiles"]} <= {*PROFILES}


def test_changes_go_over_profiles_and_these_over_the_preset():
    assert [load_experiment("figure2", profile).seeds for profile in ("paper", "laptop")] == [5, 3]
    assert load_experiment("figure2", "laptop", {"seeds": 4}).seeds == 4
    paper = load_experiment("table1", "paper", {"network": {"mnist": "lenet"}, "recipes": {"mixup": {"epochs": 4}}})
    assert (paper.network["mnist"], paper.network["cifar10"]) == ("lenet", "resnet18")
    assert paper.recipes == {"forward": {"momentum": 0.9}, "mixup": {"epochs": 4}}
    assert {*load_experiment("table1", "paper", {"network": "lenet"}).network.values()} == {"lenet"}
    none = load_experiment("table1", "paper", {"augment": {"cifar10": "none"}, "stem": "none"})
    assert (none.augment.keys(), none.stem) == ({"fashion-mnist", "cifar100"}, None)


def test_unknown_names_are_refused():
    for name, profile, changes, nearest in [
        ("figur2", "paper", {}, "figure2"),
        ("figure2", "latop", {}, "laptop"),
        ("figure2", "paper", {"epoch": 1}, "epochs"),
    ]:
        with pytest.raises(UnknownNameError, match=f"Did you mean '{nearest}'"):
            load_experiment(name, profile, changes)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seeds": 0}, "at least 1 for seeds, got 0"),
        ({"seeds": "many"}, "whole number.*got 'many'"),
        ({"epochs": True}, "whole number.*got True"),
        ({"momentum": "high"}, "a number for momentum"),
        ({"batch_norm": 1}, "true or false"),
        ({"recipes": {"forward": 3}}, r"a table for recipes\.forward"),
        ({"sizes": [1.5]}, "whole numbers"),
        ({"sizes": [0]}, "whole numbers"),
        ({"sizes": ["all"]}, "a number for sizes"),
        ({"optimizer": "lbfgs", "learning_rate": 0.1}, "'sgd' or 'adam'"),
        ({"optimizer": "adam"}, "learning_rate beside"),
        ({"stem": "small"}, "Expected 'imagenet' for stem, got 'small'"),
        ({"schedule": "cosine"}, "'steps' or 'one-cycle'"),
        ({"noise": [0.2]}, "a name for noise"),
        ({"datasets": ["digits"]}, "network for 'digits'"),
    ],
)
def test_unusable_values_are_refused(change, words):
    with pytest.raises(InputError, match=words):
        load_experiment("table1", "paper", change)


def test_changes_from_the_command_line():
    texts = ["sizes=[100, 0.5]", "loss=logistic", "estimators=t, true", "epochs=3", "batch_norm=true", "stem=none",
             "recipes.forward.momentum=0.9", "recipes.forward.schedule=steps"]  # fmt: skip
    found = load_experiment("table1", "paper", parse_settings(texts))
    assert (found.sizes, found.loss, found.estimators) == ((100.0, 0.5), "logistic", ("t", "true"))
    assert (found.epochs, found.batch_norm, found.stem) == (3, True, None)
    assert found.recipes == {"forward": {"momentum": 0.9, "schedule": "steps"}}
    assert load_experiment("table1", "paper", parse_settings(["estimators=true"])).estimators == ("true",)
    for sizes in ("sizes=0.1,1.0", "sizes=1.0"):
        assert load_experiment("figure3", "paper", parse_settings([sizes])).sizes[-1] == 1.0
