"""How data flows: blocks of rows, the posterior that reads them, and what one pass keeps."""

from dualt.rows.parts import SummaryOnly, concatenate
from dualt.rows.posterior import NoisyPosterior
from dualt.rows.summary import PosteriorSummary, summarize

__all__ = ["NoisyPosterior", "PosteriorSummary", "SummaryOnly", "concatenate", "summarize"]
