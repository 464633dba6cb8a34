"""The floor: the least a supervisor in Python can be. Bare `posix_spawn`, pidfds, one epoll.

`python floor.py PIPE COMMAND...` keeps each command running, writes a byte to PIPE when all
have begun, and ends them all on SIGTERM. No state, no logs, no orders, no safety.
"""

import os
import select
import signal
import sys


def main() -> None:
    """Start everything, then start again whatever ends."""
    ready, commands = int(sys.argv[1]), sys.argv[2:]
    epoll = select.epoll()
    wake, stop = os.pipe()
    os.set_blocking(stop, False)
    signal.set_wakeup_fd(stop)
    signal.signal(signal.SIGTERM, lambda *_: None)
    epoll.register(wake, select.EPOLLIN)
    held = {}
    for command in commands:
        hold(epoll, held, command)
    os.write(ready, b".")
    while True:
        for descriptor, _ in epoll.poll():
            if descriptor == wake:
                end(held)
                return
            _, command = held.pop(descriptor)
            epoll.unregister(descriptor)
            os.waitid(os.P_PIDFD, descriptor, os.WEXITED)
            os.close(descriptor)
            hold(epoll, held, command)


def hold(epoll: select.epoll, held: dict[int, tuple[int, str]], command: str) -> None:
    """Start one process and watch it."""
    argv = command.split()
    pid = os.posix_spawnp(argv[0], argv, os.environ)
    descriptor = os.pidfd_open(pid)
    held[descriptor] = pid, command
    epoll.register(descriptor, select.EPOLLIN)


def end(held: dict[int, tuple[int, str]]) -> None:
    """End them all and wait for it."""
    for pid, _ in held.values():
        os.kill(pid, signal.SIGTERM)
    for pid, _ in held.values():
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
