"""Broken and odd tables: one line that says what to do, or a right answer; never a traceback."""

import gzip
import io
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from command_line import run
from comtl.tables import load_model

RNG = np.random.default_rng(0)
N = 24
HOURS = RNG.exponential(5, N).round(2)
SCHOOL = np.tile(["North", "South", "West"], N // 3)
SCORE = (2 * HOURS + (SCHOOL == "West") + 0.1 * RNG.normal(size=N)).round(3)
GOOD = pd.DataFrame({"school": SCHOOL, "hours": HOURS, "score": SCORE})
ARGUMENTS = ("--task", "school", "--target", "score", "--model", "pooled", "--no-score")


def csv(frame=GOOD, **columns):
    return frame.assign(**columns).to_csv(index=False).encode()


def parquet(frame=GOOD, **columns):
    content = io.BytesIO()
    frame.assign(**columns).to_parquet(content)
    return content.getvalue()


def at(place, value, column=HOURS):
    """A column as text with another value in one row."""
    values = [str(one) for one in column]
    values[place] = value
    return values


@dataclass(frozen=True)
class Case:
    """A file, what is asked of it, and the text of the error, or of the output where it works."""

    name: str
    content: bytes | None
    text: str
    extra: tuple[str, ...] = ()
    file: str = "t.csv"


TEXT = csv().decode()

REFUSED = [
    # Files that are no tables.
    Case("empty", b"", "is empty"),
    Case("blank lines only", b"\n\n  \n", "is empty"),
    Case("header only", b"school,hours,score\n", "no rows"),
    Case("missing file", None, "There is no file"),
    Case("spreadsheet", b"PK\x03\x04" + bytes(50), "save the sheet as CSV"),
    Case("binary named csv", bytes(range(256)) * 4, "null bytes"),
    Case("picture named csv", b"\x89PNG\r\n\x1a\n\xff\xfe\x01" * 20, "not UTF-8"),
    Case("null bytes", TEXT.replace("North", "No\x00rth").encode(), "null bytes"),
    Case("truncated gzip", gzip.compress(csv())[:-20], "incomplete or damaged", file="t.csv.gz"),
    Case("damaged gzip", b"\x1f\x8b" + bytes(40), "damaged", file="t.csv.gz"),
    Case("truncated parquet", parquet()[:-30], "incomplete or damaged", file="t.parquet"),
    Case("damaged parquet", b"PAR1" + bytes(100) + b"PAR1", "damaged", file="t.parquet"),
    Case("damaged name", parquet().replace(b"hours", b"hou\xb3s"), "damaged", file="t.parquet"),
    Case("truncated arrow", b"ARROW1\x00\x00" + bytes(60), "damaged", file="t.arrow"),
    Case("parquet without rows", parquet(GOOD.head(0)), "no rows", file="t.parquet"),
    Case("prose", b"Dear all,\nplease find the table attached.\n", "row 2"),
    Case("json", b'{"school": ["North"], "hours": [1]}\n', "no rows"),
    # Encodings.
    Case("utf-16", TEXT.encode("utf-16"), "--encoding utf-16"),
    Case("utf-16 without a mark", TEXT.encode("utf-16-le"), "--encoding utf-16-le"),
    Case("latin-1", TEXT.replace("North", "Nörd").encode("latin-1"), "--encoding cp1252"),
    Case("wrong encoding named", TEXT.encode(), "not utf-16", extra=("--encoding", "utf-16")),
    Case("unknown encoding", TEXT.encode(), "is unknown", extra=("--encoding", "martian")),
    # Shape.
    Case("wrong delimiter", TEXT.replace(",", "~").encode(), "one column only"),
    Case("spaces as delimiter", TEXT.replace(",", " ").encode(), "one column only"),
    Case("short row", (TEXT + "North,5\n").encode(), "row 26 (the header is row 1) has 2 fields"),
    Case("long row", (TEXT + "North,5,6,7\n").encode(), "4 fields, the header has 3"),
    Case("decimal commas unquoted", TEXT.replace(".", ",").encode(), "fields"),
    Case("quote never closed", TEXT.replace("North", '"North', 1).encode(), "never closed"),
    Case("duplicate columns", TEXT.replace("hours", "score", 1).encode(), "same name: 'score'"),
    Case("duplicates but for spaces", TEXT.replace("hours", " score ", 1).encode(), "same name"),
    Case("nameless column", TEXT.replace("hours", "", 1).encode(), "column 2 has no name"),
    Case("one column", b"score\n1\n2\n3\n", "one column only"),
    Case("no header", csv().split(b"\n", 1)[1], "no column 'school'"),
    # Tasks and targets.
    Case("task column absent", csv(GOOD.drop(columns="school")), "--task"),
    Case("target column absent", csv(GOOD.drop(columns="score")), "--target"),
    Case("letters swapped", csv(GOOD.rename(columns={"score": "scoer"})), "did you mean 'scoer'"),
    Case("misspelt", csv(GOOD.rename(columns={"school": "School"})), "did you mean 'School'"),
    Case("missing tasks", csv(school=at(3, "", SCHOOL)), "no task in 1 row"),
    Case("NA as a task", csv(school=at(3, "NA", SCHOOL)), "--category school"),
    Case("tasks with fractions", csv(school=HOURS), "fractions"),
    Case("tasks of dates", parquet(school=pd.Timestamp("2024-01-01")), "text or whole numbers"),
    Case("no targets", csv(score=""), "no values"),
    Case("constant target", csv(score=5), "nothing to learn"),
    Case("one class", csv(score="yes"), "two or more"),
    Case("target with signs", csv(score=[f"$1,{i:03d}" for i in range(N)]), "plain numbers"),
    Case("target with a word", csv(score=at(0, "about 5", SCORE)), "plain numbers"),
    Case("target of dates", csv(score=[f"2024-01-{i + 1:02d}" for i in range(N)]), "dates"),
    Case("target of names", csv(score=[f"pupil {i}" for i in range(N)]), "target"),
    Case("infinite target", csv(score=at(3, "inf", SCORE)), "infinite"),
    Case("huge target", csv(score=at(3, "1e300", SCORE)), "another unit"),
    Case("regression of text", csv(score=SCHOOL), "--kind", extra=("--kind", "regression")),
    Case("classes of numbers", csv(), "--kind", extra=("--kind", "classification")),
    Case("one row", csv(GOOD.head(1)), "in every row"),
    Case("three rows", csv(GOOD.head(3)), "at least 5"),
    # Columns.
    Case("mixed types", csv(hours=at(3, "many")), "--number hours"),
    Case("commas of two meanings", csv(hours=[f"{i + 1},500" for i in range(N)]), "--decimal ,"),
    Case("infinite", csv(hours=at(3, "inf")), "infinite"),
    Case("infinite, in words", csv(hours=at(3, "-Infinity")), "infinite"),
    Case("huge numbers", csv(hours=at(3, "1e200")), "another unit"),
    Case("beyond all numbers", csv(hours=at(3, "1e999")), "infinite"),
    Case("nothing to learn from", csv(hours=1), "No column is left"),
    Case("no columns", csv(GOOD.drop(columns="hours")), "No column is left"),
    Case("all values missing", csv(hours=""), "No column is left"),
    Case("missing, refused", csv(hours=at(3, "")), "--missing", extra=("--missing", "refuse")),
    Case("number that is none", csv(hours=at(3, "1,5")), "1,5", extra=("--number", "hours")),
    Case("no weight", csv(w=at(3, "", HOURS)), "row 4 is missing", extra=("--weight", "w")),
    Case("negative weights", csv(w=-1), "zero or more", extra=("--weight", "w")),
    Case("weights of zero", csv(w=0), "weight", extra=("--weight", "w")),
]

FITTED = [
    Case("good", csv(), "24 rows, 3 tasks"),
    Case("parquet", parquet(), "24 rows, 3 tasks", file="t.parquet"),
    Case("parquet named csv", parquet(), "24 rows, 3 tasks"),
    Case("blank lines", TEXT.replace("\n", "\n\n").encode(), "24 rows, 3 tasks"),
    Case("no last line end", csv()[:-1], "24 rows, 3 tasks"),
    Case("spaces after commas", TEXT.replace(",", ", ").encode(), "24 rows, 3 tasks"),
    Case("latin-1, named", TEXT.replace("North", "Nörd").encode("latin-1"), "3 tasks",
         extra=("--encoding", "latin-1")),
    Case("names with brackets", csv(GOOD.rename(columns={"hours": "[bold]hours[/x]"})), "[bold]"),
    Case("decimal commas quoted", csv(hours=[f"{i},5" for i in range(N)]), "median 12"),
    Case("NaN in words", csv(hours=at(3, "NaN")), "2 features"),
    Case("None in words", csv(hours=at(3, "None")), "2 features"),
    Case("words as missing", csv(hours=at(3, "many")), "2 features", extra=("--number", "hours")),
    Case("constant column", csv(land="UK"), "'UK' in every row: left out"),
    Case("empty column", csv(more=""), "has no values: left out"),
    Case("row numbers", GOOD.to_csv().encode(), "taken for row numbers"),
    Case("category seen once", csv(town=["A"] * (N - 1) + ["B"]), "2 levels: A, B"),
    Case("one task", csv(school="North"), "nothing to share"),
    Case("every row a task", csv(school=range(N)), "right column"),
    Case("NA as a task by choice", csv(school=at(3, "NA", SCHOOL)), "4 tasks",
         extra=("--category", "school")),
    Case("large numbers", csv(hours=1e90 * HOURS), "1 feature."),
    Case("tiny numbers", csv(hours=1e-90 * HOURS), "1 feature."),
    Case("two whole numbers", csv(score=(SCORE > 5).astype(int)), "PooledClassifier"),
    Case("small whole numbers", csv(score=(SCORE // 5).astype(int)), "--kind classification"),
    Case("fields with line breaks", csv(town=np.tile(["a\nb", "c"], N // 2)), "2 levels"),
]  # fmt: skip


def refused(folder, *arguments, text):
    result = run(folder, *arguments, code=1)
    (line,) = result.stderr.strip().splitlines()
    assert text in line and line.startswith("Error: ")
    assert "Traceback" not in result.output


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_refused(case, tmp_path):
    if case.content is not None:
        (tmp_path / case.file).write_bytes(case.content)
    asked = (case.file, *ARGUMENTS, *case.extra, "--quiet")
    refused(tmp_path, "fit", *asked, text=case.text)
    assert not (tmp_path / "model.comtl").exists()


@pytest.mark.parametrize("case", FITTED, ids=lambda case: case.name)
def test_fitted(case, tmp_path):
    (tmp_path / case.file).write_bytes(case.content)
    result = run(tmp_path, "fit", case.file, *ARGUMENTS, *case.extra)
    assert case.text in result.stdout
    model = load_model(tmp_path / "model.comtl")
    encoding = case.extra if case.extra[:1] == ("--encoding",) else ()
    again = run(tmp_path, "predict", "model.comtl", case.file, *encoding)
    assert len(again.stdout.splitlines()) > model.rows
    assert "does not know" not in again.stderr


# ---- prediction ---------------------------------------------------------------------------------

TRAINED = GOOD.assign(sex=np.tile(["f", "m"], N // 2), meals=np.tile(["no", "yes", "yes"], N // 3))
NEW = TRAINED.drop(columns="score").head(4)
ASKED = [
    Case("good", csv(NEW), ""),
    Case("shuffled columns", csv(NEW[["sex", "meals", "hours", "school"]]), ""),
    Case("further columns", csv(NEW, day="2024-01-01", score=1), ""),
    Case("tabs", NEW.to_csv(index=False, sep="\t").encode(), ""),
    Case("as parquet", parquet(NEW), "", file="t.parquet"),
    Case("unseen level", csv(NEW, sex="x"), "4 rows with 1 unknown level"),
    Case("unseen task", csv(NEW, school="East"), "4 rows of 4 with 1 task"),
    Case("number as a task", csv(NEW, school=7), "4 rows of 4 with 1 task"),
    Case("no task", csv(NEW, school=["North", "", "", ""]), "3 rows of 4 with 1 task"),
    Case("missing number", csv(NEW, hours=[1, "", 2, 3]), "1 missing value, none in training"),
    Case("missing level", csv(NEW, sex=["f", "", "m", "m"]), "1 missing value, none in training"),
    Case("whole numbers for others", csv(NEW, hours=[1, 2, 3, 4]), ""),
    Case("one row", csv(NEW.head(1)), ""),
    Case("spelt in capitals", csv(NEW, meals=NEW.meals.str.upper()), ""),
]
UNASKED = [
    Case("empty", b"", "is empty"),
    Case("header only", csv(NEW.head(0)), "no rows"),
    Case("column missing", csv(NEW.drop(columns="hours")), "no column 'hours'"),
    Case("task missing", csv(NEW.drop(columns="school")), "no column 'school'"),
    Case("columns missing", csv(NEW.drop(columns=["hours", "meals"])), "column 'hours', 'meals'."),
    Case("longer name", csv(NEW.rename(columns={"hours": "HOURS a week"})), "mean 'HOURS a week'?"),
    Case("renamed", csv(NEW.rename(columns={"hours": "Hours"})), "did you mean 'Hours'"),
    Case("number became text", csv(NEW, hours=["a", "b", "c", "d"]), "plain numbers"),
    Case("number with signs", csv(NEW, hours=["1,5", "2,5", "3,5", "4,5"]), "plain numbers"),
    Case("number became a date", parquet(NEW, hours=pd.Timestamp("2024-01-01")), "hold numbers",
         file="t.parquet"),
    Case("yes became a number", csv(NEW, meals=[0, 1, 1, 0]), "now holds '0'"),
    Case("another word", csv(NEW, meals="maybe"), "'no' and 'yes' in training and now holds"),
    Case("infinite", csv(NEW, hours="inf"), "infinite"),
    Case("ragged", csv(NEW) + b"North\n", "has 1 field"),
    Case("utf-16", csv(NEW).decode().encode("utf-16"), "--encoding utf-16"),
    Case("unseen task, refused", csv(NEW, school="East"), "comtl adapt",
         extra=("--unseen", "refuse")),
]  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    (folder / "train.csv").write_bytes(csv(TRAINED))
    run(folder, "fit", "train.csv", *ARGUMENTS, "--quiet")
    return folder


@pytest.mark.parametrize("case", ASKED, ids=lambda case: case.name)
def test_asked(case, trained):
    (trained / case.file).write_bytes(case.content)
    result = run(trained, "predict", "model.comtl", case.file)
    assert case.text in result.stderr
    assert bool(result.stderr) == bool(case.text)
    found = pd.read_csv(io.StringIO(result.stdout), converters={"prediction": float})
    assert np.isfinite(found.prediction).all()
    if not case.text and "whole" not in case.name:
        model = load_model(trained / "model.comtl")
        np.testing.assert_array_equal(found.prediction, model.predict(NEW.head(len(found))))


@pytest.mark.parametrize("case", UNASKED, ids=lambda case: case.name)
def test_unasked(case, trained):
    (trained / case.file).write_bytes(case.content)
    refused(trained, "predict", "model.comtl", case.file, *case.extra, text=case.text)


@pytest.mark.parametrize(
    ("content", "text"),
    [(b"", "empty"), (b"not a model", "not a model"), (None, "damaged"), (csv(), "not a model")],
)
def test_broken_models(content, text, trained):
    whole = (trained / "model.comtl").read_bytes()
    broken = whole[:-10] + bytes(10) if content is None else content
    (trained / "broken.comtl").write_bytes(broken)
    for name in ("inspect", "report"):
        refused(trained, name, "broken.comtl", text=text)


def test_a_folder(tmp_path):
    refused(tmp_path, "fit", ".", *ARGUMENTS, text="is a folder")


def test_no_permission(tmp_path, monkeypatch):
    def never(path):
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / "t.csv").write_bytes(csv())
    monkeypatch.setattr("pathlib.Path.read_bytes", never)
    refused(tmp_path, "fit", "t.csv", *ARGUMENTS, text="may not be read")


def test_thousands_of_categories(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "school": rng.integers(0, 20, 6000),
            "town": [f"town {i}" for i in rng.integers(0, 2500, 6000)],
            "hours": rng.normal(size=6000),
        }
    )
    frame["score"] = 2 * frame.hours + rng.normal(size=6000)
    (tmp_path / "t.csv").write_bytes(csv(frame))
    run(tmp_path, "fit", "t.csv", *ARGUMENTS)
    model = load_model(tmp_path / "model.comtl")
    assert model.encoder.sparse
    assert np.corrcoef(model.predict(frame), frame.score)[0, 1] > 0.8
