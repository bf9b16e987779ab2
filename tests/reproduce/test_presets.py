"""Presets, profiles and changes; every typo is named."""

import pytest

from dualt.errors import FileError, InputError, UnknownNameError
from dualt.reproduce import EXPERIMENTS, PROFILES, load_experiment
from dualt.reproduce.experiments import parse_change, parse_experiment

PRESET = """
title = "a title"
shows = "errors"
datasets = ["synthetic", "mnist"]
noise = ["sym-20"]
network = "mlp"
seeds = 5

[profiles.smoke]
seeds = 2

[profiles.laptop.network]
mnist = "lenet"
synthetic = "mlp-small"
"""


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("profile", PROFILES)
def test_every_preset_has_every_profile(name, profile):
    experiment = load_experiment(name, profile)
    assert (experiment.name, experiment.profile) == (name, profile)
    assert set(experiment.datasets) <= experiment.network.keys()


def test_tables_go_over_one_another_all_the_way_down():
    text = PRESET + "[profiles.paper.recipes.forward]\nmomentum = 0.9\n[profiles.paper.width]\nmnist = 0.25\n"
    changes = {"recipes": {"forward": {"epochs": 3}, "mixup": {"epochs": 4}}, "augment": "shift"}
    experiment = parse_experiment(text, "mine", "paper", changes)
    assert experiment.recipes == {"forward": {"momentum": 0.9, "epochs": 3}, "mixup": {"epochs": 4}}
    assert experiment.width == {"mnist": 0.25}
    assert experiment.augment == {"synthetic": "shift", "mnist": "shift"}
    assert parse_experiment(text, "mine", "paper", {"augment": {"mnist": "none"}}).augment == {}


def test_layers_go_over_one_another():
    assert parse_experiment(PRESET, "mine", "paper").seeds == 5
    assert parse_experiment(PRESET, "mine", "smoke").seeds == 2
    assert parse_experiment(PRESET, "mine", "smoke", {"seeds": 3}).seeds == 3
    laptop = parse_experiment(PRESET, "mine", "laptop", {"network": {"mnist": "resnet18"}})
    assert laptop.network == {"mnist": "resnet18", "synthetic": "mlp-small"}
    assert parse_experiment(PRESET, "mine", "laptop", {"network": "lenet"}).network["synthetic"] == "lenet"


@pytest.mark.parametrize(
    ("typo", "nearest"),
    [("sedes = 3", "seeds"), ("[profiles.smok]\nseeds = 1", "smoke"), ("[profiles.paper]\nepoch = 1", "epochs")],
)
def test_a_typo_is_named_with_what_was_meant(typo, nearest):
    text = PRESET.replace("seeds = 5", typo, 1) if "profiles" not in typo else PRESET + typo
    with pytest.raises(UnknownNameError, match=f"Did you mean '{nearest}'"):
        parse_experiment(text, "mine", "paper")


def test_unknown_names_are_refused():
    with pytest.raises(UnknownNameError, match="Did you mean 'figure2'"):
        load_experiment("figur2")
    with pytest.raises(UnknownNameError, match="Did you mean 'laptop'"):
        load_experiment("figure2", "latop")
    with pytest.raises(FileError, match=r"mine\.toml"):
        parse_experiment("title = ", "mine")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seeds": 0}, "at least 1"),
        ({"seeds": "many"}, "type int"),
        ({"epochs": True}, "type int"),
        ({"sizes": [1.5]}, "whole numbers"),
        ({"sizes": ["all"]}, "numbers"),
        ({"optimizer": "lbfgs", "learning_rate": 0.1}, "'sgd' or 'adam'"),
        ({"optimizer": "adam"}, "learning_rate beside"),
        ({"stem": "small"}, "'auto' or 'full' or 'imagenet'"),
        ({"schedule": "cosine"}, "'steps' or 'one-cycle'"),
        ({"noise": [0.2]}, "names"),
        ({"network": {}, "datasets": ["cifar10"]}, "network for 'cifar10'"),
    ],
)
def test_unusable_values_are_refused(change, words):
    with pytest.raises(InputError, match=words):
        parse_experiment(PRESET.replace('network = "mlp"', "[network]\nmnist = 'mlp'\nsynthetic = 'mlp'").replace(
            "seeds = 5", ""), "mine", "paper", change)  # fmt: skip


def test_a_preset_without_its_keys_is_refused():
    with pytest.raises(InputError, match="'shows'"):
        parse_experiment(PRESET.replace('shows = "errors"', ""), "mine")


def test_changes_are_read_as_toml_or_else_as_text():
    assert parse_change("sizes=[100, 0.5]") == ("sizes", [100, 0.5])
    assert parse_change("loss = logistic") == ("loss", "logistic")
    assert parse_change("sizes=0.1,0.3,1.0") == ("sizes", [0.1, 0.3, 1.0])
    assert parse_change("sizes=100") == ("sizes", [100])
    assert parse_change("estimators=t,true") == ("estimators", ["t", "true"])
    assert parse_change("recipes.forward.momentum=0.9") == ("recipes", {"forward": {"momentum": 0.9}})
    assert parse_change("noise=sym-20, pair-45") == ("noise", ["sym-20", "pair-45"])
    for text in ("epochs", "=3"):
        with pytest.raises(InputError, match="field=value"):
            parse_change(text)
