"""Out-of-fold probabilities: no example is judged by a classifier that was trained on its label."""

from dualt.crossfit.folds import out_of_fold_probabilities
from dualt.crossfit.image_features import ImageFeatures
from dualt.crossfit.out_of_fold import OutOfFold, cross_fit

__all__ = ["ImageFeatures", "OutOfFold", "cross_fit", "out_of_fold_probabilities"]
