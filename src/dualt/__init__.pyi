"""The public names of `dualt`, for type checkers and editors; `__init__.py` loads them when they are first used."""

from dualt import audit as audit
from dualt import crossfit as crossfit
from dualt import datasets as datasets
from dualt import errors as errors
from dualt import estimators as estimators
from dualt import io as io
from dualt import issues as issues
from dualt import losses as losses
from dualt import noise as noise
from dualt import report as report
from dualt import results as results
from dualt import rows as rows
from dualt import transition as transition
from dualt import votes as votes
from dualt.audit import Audit as Audit
from dualt.audit import noisy_accuracy as noisy_accuracy
from dualt.classifier import RobustClassifier as RobustClassifier
from dualt.crossfit import OutOfFold as OutOfFold
from dualt.crossfit import cross_fit as cross_fit
from dualt.estimators import estimate_transition as estimate_transition
from dualt.estimators.sklearn import CleanCountEstimator as CleanCountEstimator
from dualt.estimators.sklearn import ConfidentJointEstimator as ConfidentJointEstimator
from dualt.estimators.sklearn import DualTEstimator as DualTEstimator
from dualt.estimators.sklearn import HocEstimator as HocEstimator
from dualt.estimators.sklearn import JointEstimator as JointEstimator
from dualt.estimators.sklearn import SelectiveEstimator as SelectiveEstimator
from dualt.estimators.sklearn import SpadeEstimator as SpadeEstimator
from dualt.estimators.sklearn import TEstimator as TEstimator
from dualt.issues import LabelIssues as LabelIssues
from dualt.issues import TrainingDynamics as TrainingDynamics
from dualt.issues import find_label_issues as find_label_issues
from dualt.nn.classifier import RobustNetClassifier as RobustNetClassifier
from dualt.results import TransitionEstimate as TransitionEstimate
from dualt.results.display import plot_transition as plot_transition
from dualt.transition import clean_posterior as clean_posterior
from dualt.transition import l1_error as l1_error
from dualt.transition import to_noisy as to_noisy
from dualt.votes import Votes as Votes
from dualt.votes import combine_votes as combine_votes

__version__: str
__all__: list[str]
