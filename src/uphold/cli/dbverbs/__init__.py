"""The verbs after `uphold db`, one module each: whoever adds a module adds a verb.

A module has `SUMMARY` (what it does, in one line), `declare_arguments(parser)` for options of its
own, and `run(args)`, as the modules of `uphold.cli.commands` have.
"""
