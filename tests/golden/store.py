"""Golden fits on disk: their numbers one after the other, and a list of what they are."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
FoldFits = dict[str, dict[str, np.ndarray]]


def write_fits(fits: FoldFits, commits: dict[str, str], about: dict[str, str]) -> None:
    cases = {
        name: {"commit": commits[name], "shapes": {part: v.shape for part, v in fit.items()}}
        for name, fit in fits.items()
    }
    flat = [value.ravel() for fit in fits.values() for value in fit.values()]
    np.savez_compressed(FOLDER / "fits.npz", values=np.concatenate(flat))
    lines = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in cases.items())
    text = f'{{\n "about": {json.dumps(about)},\n "cases": {{\n{lines}\n }}\n}}\n'
    (FOLDER / "fits.json").write_text(text)


def read_cases() -> dict[str, dict]:
    """Of each case the commit that its numbers are from, and their shapes."""
    return json.loads((FOLDER / "fits.json").read_text())["cases"]


def read_fits() -> FoldFits:
    values, at = np.load(FOLDER / "fits.npz")["values"], 0
    fits: FoldFits = {}
    for name, case in read_cases().items():
        fits[name] = {}
        for part, shape in case["shapes"].items():
            size = int(np.prod(shape))
            fits[name][part] = values[at : at + size].reshape(shape)
            at += size
    return fits
