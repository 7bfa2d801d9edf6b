"""Processes that know of each other, as torchrun tells them."""

from __future__ import annotations

import socket


def free_port() -> int:
    """One where the first of them may listen."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def environment(rank: int, ranks: int, port: int) -> dict[str, str]:
    """What one of them is told."""
    told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "MASTER_PORT": port}
    return {"MASTER_ADDR": "127.0.0.1"} | {name: str(value) for name, value in told.items()}
