"""Hosts one Python worker in a process of its own: `python -m uphold.runner app.indexer:Indexer`.

Imports `uphold.sdk` and nothing else of uphold: what is here, every Python worker carries.
"""
