"""The figures and tables of the paper: presets, runs, sweep, results, claims."""

from dualt.reproduce.experiments import EXPERIMENTS, PROFILES, Experiment, load_experiment
from dualt.reproduce.figures import render
from dualt.reproduce.results import results_of
from dualt.reproduce.runs import RunSpec, runs_of
from dualt.reproduce.sweep import read_records, run_sweep

__all__ = [
    "EXPERIMENTS", "PROFILES", "Experiment", "RunSpec", "load_experiment", "read_records", "render", "results_of",
    "run_sweep", "runs_of",
]  # fmt: skip
