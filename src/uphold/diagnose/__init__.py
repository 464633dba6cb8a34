"""Reports about a worker and everything around it, section by section."""
