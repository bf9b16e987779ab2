"""How data flows: blocks of rows, the posterior that reads them, and what one pass keeps."""

from dualt.rows.entry import as_posterior
from dualt.rows.posterior import NoisyPosterior
from dualt.rows.summary import PosteriorSummary, summarize

__all__ = ["NoisyPosterior", "PosteriorSummary", "as_posterior", "summarize"]
