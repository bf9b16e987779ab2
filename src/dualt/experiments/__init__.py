"""The figures and tables of the paper, and those past it: specs, sweep, records, results."""

from dualt.experiments.grid import runs_of
from dualt.experiments.presets import EXPERIMENTS, PAPER_EXPERIMENTS, PROFILES, load_experiment
from dualt.experiments.published import published_values
from dualt.experiments.records import Store
from dualt.experiments.rendering import render
from dualt.experiments.results import Result, results_of
from dualt.experiments.spec import Experiment, Run
from dualt.experiments.sweep import Options, Progress, run_sweep

__all__ = [
    "EXPERIMENTS",
    "PAPER_EXPERIMENTS",
    "PROFILES",
    "Experiment",
    "Options",
    "Progress",
    "Result",
    "Run",
    "Store",
    "load_experiment",
    "published_values",
    "render",
    "results_of",
    "run_sweep",
    "runs_of",
]
