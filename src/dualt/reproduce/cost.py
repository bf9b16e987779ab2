"""What training costs, roughly and beforehand: the share that is done, and the time that is left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dualt.nn.methods import METHODS
from dualt.reproduce.spec import PosteriorSpec, RunSpec

# Seconds of one core for an epoch of 10,000 samples at full width, as measured here; a cost is only ever compared
# with others, and the pace of the machine is learned on the way.
_SECONDS = {
    "mlp": 0.2, "mlp-small": 0.08, "resnet-vector": 0.4, "lenet": 2.0, "cnn9": 300.0,
    "resnet18": 80.0, "resnet34": 150.0, "resnet50": 200.0,
}  # fmt: skip
_FULL_RESOLUTION = 9.0
# Of a data set whose size is not known before it is read.
_SAMPLES = 50_000


def lineage(method: str | None) -> Iterator[str]:
    """Yield a method and those that it starts from."""
    while method is not None:
        yield method
        method = METHODS[method].starts_from


def epochs_of(run: RunSpec, stage: str) -> int:
    """Return how many epochs a stage of the run trains for."""
    if stage == "ce":
        return run.posterior.epochs or METHODS["ce"].recipe.epochs
    own = next((dict(changes).get("epochs") for name, changes in run.settings if name == stage), None)
    return own or run.method_epochs or METHODS[stage].recipe.epochs


def epoch_cost(posterior: PosteriorSpec, stage: str) -> float:
    """Return the seconds that an epoch of a stage takes one core, by rule of thumb."""
    width = posterior.width**2 if posterior.network.startswith(("resnet1", "resnet3", "resnet5", "cnn")) else 1.0
    seconds = width * _SECONDS.get(posterior.network, 1.0)
    if posterior.network.startswith("resnet") and posterior.stem in (None, "auto", "full"):
        seconds *= _FULL_RESOLUTION
    n_samples = posterior.size * (_SAMPLES if posterior.size <= 1 else 1)
    n_networks = 2 if stage in ("decoupling", "co-teaching") else 1
    return n_networks * seconds * n_samples / 10_000


def total_cost(runs: Iterable[RunSpec]) -> float:
    """Return the cost of all stages that the runs need, each counted once."""
    stages: dict[tuple[PosteriorSpec, str | None, str], float] = {}
    for run in runs:
        folds = run.posterior.folds if run.estimator is not None else 1
        for stage in ("ce", *lineage(run.method)):
            key = (run.posterior, run.estimator if stage != "ce" else None, stage)
            cost = epochs_of(run, stage) * epoch_cost(run.posterior, stage)
            # The networks of k folds see (k − 1)/k of the samples each.
            stages[key] = max(stages.get(key, 0.0), cost * (folds if stage == "ce" and folds > 1 else 1))
    return sum(stages.values())
