"""The one training loop, and what it needs: inputs, recipes, evaluation, checkpoints."""

from dualt.training.history import EpochRecord, History
from dualt.training.inputs import Inputs, Part, TrainingData, as_inputs
from dualt.training.loop import Trained, train
from dualt.training.method import Batch, Method, Network
from dualt.training.prediction import evaluate, predict_probs
from dualt.training.recipe import Machine, Recipe

__all__ = [
    "Batch",
    "EpochRecord",
    "History",
    "Inputs",
    "Machine",
    "Method",
    "Network",
    "Part",
    "Recipe",
    "Trained",
    "TrainingData",
    "as_inputs",
    "evaluate",
    "predict_probs",
    "train",
]
