"""The one training loop, and what it needs: inputs, recipes, evaluation, checkpoints."""

from dualt.nn.training.history import EpochRecord, History
from dualt.nn.training.inputs import Inputs, Part, TrainingData, as_inputs
from dualt.nn.training.loop import train
from dualt.nn.training.method import Batch, Method, Network
from dualt.nn.training.prediction import predict_probs
from dualt.nn.training.recipe import Machine, Recipe
from dualt.nn.training.run import Trained

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
    "predict_probs",
    "train",
]
