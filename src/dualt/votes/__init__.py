"""Labels of several annotators: the consensus, and a matrix for each of them."""
