"""Starter configurations for `uphold init`: right as they stand, and meant to be edited."""

from __future__ import annotations

from typing import Final

KINDS: Final = ("minimal", "full")
LANGUAGES: Final = ("toml", "yaml")

_MINIMAL_TOML: Final = """\
# uphold keeps these running. Try:  uphold run   (Ctrl-C ends it)   or   uphold start
# Every key is explained in docs/configuration.md; `uphold check` reads this file and names
# every mistake in it. A running supervisor picks up edits by itself.

[workers.hello]
command = ["sh", "-c", "while true; do date; sleep 5; done"]

# [workers.web]
# command = "python3 -m http.server ${PORT:8001}"   # no shell: split into words
# depends_on = ["hello"]                            # started first, stopped last
# environment = { LEVEL = "info" }
# replicas = 2
"""

_MINIMAL_YAML: Final = """\
# uphold keeps these running. Try:  uphold run   (Ctrl-C ends it)   or   uphold start
# Every key is explained in docs/configuration.md; `uphold check` reads this file and names
# every mistake in it. A running supervisor picks up edits by itself.

workers:
  hello:
    command: ["sh", "-c", "while true; do date; sleep 5; done"]

#  web:
#    command: "python3 -m http.server ${PORT:8001}"   # no shell: split into words
#    depends_on: [hello]                              # started first, stopped last
#    environment: { LEVEL: info }
#    replicas: 2
"""

_FULL_TOML: Final = """\
# A tour of the keys. Every value below is the default unless a comment says otherwise.

[supervisor]
# name = "orion"            # default: the host's name
# home = ".uphold"          # state, logs and sockets; relative to this file
reconcile_every = "30s"
heartbeat_every = "30s"
on_exit = "stop"            # on TERM or Ctrl-C: "stop" the workers, or "keep" them for adoption

[defaults]                  # any worker key; tables are merged key by key
restart = "always"          # no | on-failure | always
stable_after = "60s"        # up this long: earlier failures are forgotten
max_restarts = 10           # then it is left `failed`; or "unlimited"
backoff = { first = "0s", base = "1s", max = "5m", jitter = 0.1 }
stop = { signal = "TERM", grace = "30s" }
logs = { mode = "pump", max_size = "10MB", keep = 5, compress = true }

[workers.hello]
command = ["sh", "-c", "while true; do date; sleep 5; done"]   # yours
team = "demo"                                                  # not set by default

[workers.after-hello]
command = "sleep 3600"                  # text is split into words; shell = true hands it to sh
working_dir = "."                       # relative to this file
environment = { LEVEL = "${LEVEL:info}" }   # from the environment or .env, else info
depends_on = { hello = "started" }
replicas = 1
autostart = true
enabled = true
success_exit_codes = [0]
# env_file = "worker.env"
# user = "nobody"                       # needs root
# umask = "022"
# limits = { nofile = 4096, nice = 5, processes = 50 }
# containment = "group"                 # a control group of its own; needs root or delegation
"""

_FULL_YAML: Final = """\
# A tour of the keys. Every value below is the default unless a comment says otherwise.

supervisor:
  # name: orion               # default: the host's name
  # home: .uphold             # state, logs and sockets; relative to this file
  reconcile_every: 30s
  heartbeat_every: 30s
  on_exit: stop               # on TERM or Ctrl-C: stop the workers, or keep them for adoption

defaults:                     # any worker key; tables are merged key by key
  restart: always             # no | on-failure | always
  stable_after: 60s           # up this long: earlier failures are forgotten
  max_restarts: 10            # then it is left `failed`; or unlimited
  backoff: { first: 0s, base: 1s, max: 5m, jitter: 0.1 }
  stop: { signal: TERM, grace: 30s }
  logs: { mode: pump, max_size: 10MB, keep: 5, compress: true }

workers:
  hello:
    command: ["sh", "-c", "while true; do date; sleep 5; done"]   # yours
    team: demo                                                    # not set by default

  after-hello:
    command: sleep 3600                 # text is split into words; shell: true hands it to sh
    working_dir: .                      # relative to this file
    environment: { LEVEL: "${LEVEL:info}" }   # from the environment or .env, else info
    depends_on: { hello: started }
    replicas: 1
    autostart: true
    enabled: true
    success_exit_codes: [0]
    # env_file: worker.env
    # user: nobody                      # needs root
    # umask: "022"
    # limits: { nofile: 4096, nice: 5, processes: 50 }
    # containment: group                # a control group of its own; needs root or delegation
"""

_STARTERS: Final = {
    ("minimal", "toml"): _MINIMAL_TOML,
    ("minimal", "yaml"): _MINIMAL_YAML,
    ("full", "toml"): _FULL_TOML,
    ("full", "yaml"): _FULL_YAML,
}


def starter(kind: str = "minimal", language: str = "toml") -> str:
    """Write a starter configuration; KeyError for a kind or language that is not listed above."""
    return _STARTERS[kind, language]
