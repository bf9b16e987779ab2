"""Training on noisy labels: networks, losses, the training loop and the methods of Table 1. Needs torch."""
