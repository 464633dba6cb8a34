"""One module per verb: `declare_arguments(parser)` and `run(args) -> exit code`."""
