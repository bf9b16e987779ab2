"""How to train well anyway: networks, losses, the training loop and the methods of Table 1. Needs torch."""
