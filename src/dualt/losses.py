"""The losses of `dualt.nn.losses`, for a loop of your own. Needs torch."""

# ruff: noqa: PLC0414 - type checkers take only such names as public
from dualt.nn.losses import BackwardLoss as BackwardLoss
from dualt.nn.losses import ForwardLoss as ForwardLoss
from dualt.nn.losses import RevisedLoss as RevisedLoss
from dualt.nn.losses import ReweightedLoss as ReweightedLoss
from dualt.nn.losses import backward_loss as backward_loss
from dualt.nn.losses import forward_loss as forward_loss
from dualt.nn.losses import revised_loss as revised_loss
from dualt.nn.losses import reweighted_loss as reweighted_loss
