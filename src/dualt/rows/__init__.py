"""How data flows: blocks of rows, the posterior that reads them, and what one pass keeps."""

from dualt.rows.entry import as_posterior
from dualt.rows.posterior import NoisyPosterior

__all__ = ["NoisyPosterior", "as_posterior"]
