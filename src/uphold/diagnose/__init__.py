"""Telling how things are: the report that operators ask for, section by section."""
