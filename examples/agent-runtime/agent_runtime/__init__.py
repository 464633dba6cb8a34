"""A small runtime for agents: four workers around folders of files."""
