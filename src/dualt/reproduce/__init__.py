"""The figures and tables of the paper, and those past it: specs, sweep, records, results."""

from dualt.reproduce.grid import runs_of
from dualt.reproduce.presets import EXPERIMENTS, PAPER_EXPERIMENTS, PROFILES, load_experiment
from dualt.reproduce.published import published_values
from dualt.reproduce.records import Store
from dualt.reproduce.rendering import render
from dualt.reproduce.results import Result, results_of
from dualt.reproduce.spec import Experiment, Run
from dualt.reproduce.sweep import Options, Progress, run_sweep

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
