"""The supervisor's ear for its workers: the notify socket, tied to driver and configuration.

Without a socket everything else goes on; workers then simply have nobody to speak to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uphold.drivers.hearing import Hearing
from uphold.errors import HostFailure
from uphold.host.notifying import NotifySocket

if TYPE_CHECKING:
    from collections.abc import Mapping

    from uphold.drivers.hearing import Deliver
    from uphold.drivers.process import ProcessDriver
    from uphold.host.homes import Home
    from uphold.ports.configs import ConfigSource, Revision
    from uphold.ports.logs import Log


class Ear:
    """Hears workers from `begin` on, wherever the socket could be made."""

    def __init__(self, home: Home, environ: Mapping[str, str], log: Log) -> None:
        self.hearing: Hearing | None = None
        self._socket: NotifySocket | None = None
        try:
            self._socket = NotifySocket(home, environ)
        except HostFailure as cause:
            words = f"{cause.message} {cause.remedy}"
            log.write("WARNING", "supervisor.notify_unavailable", words)

    @property
    def path(self) -> str:
        """What workers get as NOTIFY_SOCKET; empty if there is none."""
        return "" if self._socket is None else self._socket.path

    @property
    def refused(self) -> Mapping[str, int]:
        """How many messages were not believed, by reason."""
        return {} if self.hearing is None else self.hearing.refused

    def attend(self, driver: ProcessDriver, config: ConfigSource) -> None:
        """Keep up with the runs of a driver and with who may speak; before anything starts."""
        if self._socket is None:
            return
        self.hearing = Hearing(self._socket, driver.senders)
        driver.subscribe(self.hearing.hear)
        self._admit(config.current)
        config.subscribe(self._admit)

    def begin(self, deliver: Deliver) -> None:
        """Deliver what is said, also what has waited: when everything that runs is adopted."""
        if self.hearing is not None:
            self.hearing.begin(deliver)

    def restore(self) -> bool:
        """Make the socket anew if somebody removed it; True if that was needed."""
        return self._socket is not None and self._socket.restore()

    def close(self) -> None:
        """Hear no more."""
        if self._socket is not None:
            self._socket.close()

    def _admit(self, revision: Revision) -> None:
        """Let workers of other users speak, from the first configuration on that has one."""
        if self._socket is not None and any(each.user for each in revision.settings.workers):
            self._socket.admit_others()
