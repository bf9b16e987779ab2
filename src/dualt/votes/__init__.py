"""Labels of several annotators: the consensus, and a matrix for each of them."""

from dualt.votes.result import Votes, combine_votes
from dualt.votes.tables import read_votes

__all__ = ["Votes", "combine_votes", "read_votes"]
