"""Contract suites: what every implementation of a port must do, real and fake alike."""
