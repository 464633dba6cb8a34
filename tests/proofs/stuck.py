"""A mount whose server has read a request and never answers: no signal ends who waits for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Self

_SERVER = """
import ctypes, os, struct, sys
fuse = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(b"proof", sys.argv[1].encode(), b"fuse", 0, options):
    sys.exit(f"cannot mount: {os.strerror(ctypes.get_errno())}")
unique = struct.unpack_from("<IIQ", os.read(fuse, 1 << 20))[2]
answer = struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 0, 0, 4096, 1, 0, 0, 0)
os.write(fuse, struct.pack("<IiQ", 16 + len(answer), 0, unique) + answer)
print("mounted", flush=True)
while os.read(fuse, 1 << 20):
    open(sys.argv[1] + ".asked", "w").close()
"""


class FrozenMount:
    """Mounted inside the block, or PermissionError; at its end the server dies, and with it every waiting request."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> Self:
        self.folder.mkdir()
        command = [sys.executable, "-ISc", _SERVER, str(self.folder)]
        self._server = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self._server.stdout is not None
        if self._server.stdout.readline() != b"mounted\n":
            self._server.communicate()
            raise PermissionError("nothing may be mounted here")
        return self

    def __exit__(self, *_: object) -> None:
        self._server.kill()
        self._server.communicate()
        subprocess.run(["umount", "-l", self.folder], check=True)

    def asked(self) -> bool:
        """Tell whether somebody waits for an answer by now."""
        return Path(f"{self.folder}.asked").exists()
