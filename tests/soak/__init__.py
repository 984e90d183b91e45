"""Attacks on the library by chance: damaged files, kills, full disks, hostile numbers and tables.

Each trial of an attack has a random generator of its own, seeded by the seed of the run, the
attack and the number of the trial, so that a failure can be repeated alone::

    python tests/soak --seed 1 --only kills --trial 7
"""

from . import disk, files, growth, kills, paths, tables, threads, values
from .attack import Attack

ATTACKS = {
    "files": Attack("files", "damaged and forged model files", files.trial),
    "kills": Attack("kills", "`kill -9` of commands and of fits with checkpoints", kills.trial, 5),
    "disk": Attack("disk", "full and read-only disks", disk.trial),
    "values": Attack("values", "numbers of any size, type and container", values.trial, 3),
    "tables": Attack("tables", "one table in many formats, and damaged", tables.trial, 2),
    "threads": Attack("threads", "eight threads that fit, save and read", threads.trial, 2),
    "paths": Attack(
        "paths", "one path, 4 processes of 8 threads that save and read", paths.trial, 2
    ),
    "growth": Attack("growth", "memory after many calls", growth.trial, 3),
}
