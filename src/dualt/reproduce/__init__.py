"""The figures and tables of the paper, and those past it: specs, sweep, records, results."""

from dualt.reproduce.figures import render
from dualt.reproduce.grid import runs_of
from dualt.reproduce.presets import EXPERIMENTS, PAPER_EXPERIMENTS, PROFILES, load_experiment
from dualt.reproduce.records import Store
from dualt.reproduce.results import Result, published_values, results_of
from dualt.reproduce.spec import Experiment, RunSpec
from dualt.reproduce.sweep import SweepOptions, SweepProgress, run_sweep

__all__ = [
    "EXPERIMENTS",
    "PAPER_EXPERIMENTS",
    "PROFILES",
    "Experiment",
    "Result",
    "RunSpec",
    "Store",
    "SweepOptions",
    "SweepProgress",
    "load_experiment",
    "published_values",
    "render",
    "results_of",
    "run_sweep",
    "runs_of",
]
