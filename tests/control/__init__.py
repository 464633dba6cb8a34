"""Tests of the local socket."""
