"""The environment of the processes of a run, as torchrun sets it."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port on which the first process can listen."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def environment(rank: int, ranks: int, port: int) -> dict[str, str]:
    """The variables of one process."""
    variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "MASTER_PORT": port}
    return {"MASTER_ADDR": "127.0.0.1"} | {name: str(value) for name, value in variables.items()}
