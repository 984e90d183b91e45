"""Files that are there whole or not at all, whoever writes them at the same time."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows, where nothing is swept
    fcntl: Any = None  # type: ignore[no-redef]

PARTS = ".comtl-", ".part"
"""How names of files begin and end while they are written."""


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that a reader sees the old one or the new one, never a part.

    Of several writers the last one wins. Links are followed, mode and owner of an existing file
    are kept, a read-only file is an error. What is no plain file, such as a pipe, is written to.
    """
    if not isinstance(content, bytes):
        raise TypeError(f"content must be bytes, not {type(content).__name__}.")
    target = Path(os.path.realpath(path))
    if is_special(target):
        target.write_bytes(content)
        return
    old = target.stat() if target.exists() else None
    if old is not None and not stat.S_IMODE(old.st_mode) & 0o222:
        raise PermissionError(errno.EACCES, "The file is read-only", str(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target.parent)
    with _part(target.parent) as (file, part):
        file.write(content)
        if old is not None:
            made = part.stat()
            if (made.st_uid, made.st_gid) != (old.st_uid, old.st_gid):
                with suppress(OSError):  # as far as this user may
                    os.chown(part, old.st_uid, old.st_gid)
            part.chmod(stat.S_IMODE(old.st_mode))
        to_disk(file)
        if fcntl is None:
            file.close()
        part.replace(target)
    _folder_to_disk(target.parent)


def is_special(path: Path) -> bool:
    """Whether a path is a pipe or a device: neither a plain file nor a folder."""
    return path.exists() and not path.is_file() and not path.is_dir()


def to_disk(file: IO[Any]) -> None:
    """Flush a file to disk."""
    file.flush()
    os.fsync(file.fileno())


@contextmanager
def _part(folder: Path) -> Iterator[tuple[IO[bytes], Path]]:
    """File under a name that no other writer has, removed unless it is renamed."""
    while True:
        part = folder / secrets.token_hex(8).join(PARTS)
        with part.open("xb") as file:
            # Another writer may have swept the file away before it was locked.
            _lock(file, wait=True)
            if not part.exists():
                continue
            try:
                yield file, part
            finally:
                part.unlink(missing_ok=True)
            return


def _sweep(folder: Path) -> None:
    """Remove what killed writers left: parts that nobody holds."""
    for part in folder.glob("*".join(PARTS)):
        with suppress(OSError), part.open("rb") as file:
            if _lock(file, wait=False):
                part.unlink()


def _lock(file: IO[bytes], wait: bool) -> bool:
    """Whether this process now holds the file; a lock ends with its process."""
    if fcntl is None:
        return wait
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _folder_to_disk(folder: Path) -> None:
    """Flush the names in a folder, where the system can."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
