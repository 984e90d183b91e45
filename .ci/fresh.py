"""Fresh environments, and commands that know nothing of the one who calls."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

FOR_PIP = {key: value for key, value in os.environ.items() if re.match("PIP_|SSL_|.*_proxy$", key)}


def run(*command: object, cwd: Path, **variables: str) -> str:
    """Output of a command that succeeds."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=variables, capture_output=True, text=True)
    if done.returncode:
        said = (done.stdout + done.stderr)[-5000:]
        sys.exit(f"FAILED with {done.returncode}: {' '.join(words)}\n{said}")
    return done.stdout


def install(python: Path, *requirements: object) -> None:
    """Let pip install into the environment of an interpreter."""
    run(python, "-m", "pip", "-q", "install", *requirements, cwd=python.parent, **FOR_PIP)


def environment(folder: Path, *requirements: object) -> Path:
    """Interpreter of a fresh environment."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    install(python, *requirements)
    return python


def packages(python: Path) -> Path:
    """Folder of the packages of an environment."""
    return next((python.parents[1] / "lib").glob("python*/site-packages"))
