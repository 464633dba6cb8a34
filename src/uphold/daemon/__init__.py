"""The composition root: the only place that introduces everybody to everybody."""
