"""Dates of tables: read in any usual form, and what of them becomes features."""

from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comtl import load
from comtl.tables import Encoder, TableError, fit_table
from comtl.tables.dates import ORIGIN, are_dates, dates_of, order_of, parts_of, shown_date

FORMATS = {
    "ymd": ["%Y-%m-%d", "%Y/%m/%d", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ"],
    "dmy": ["%d/%m/%Y", "%d.%m.%Y", "%d-%m-%y", "%d/%m/%Y %H:%M", "%d. %m. %Y"],
    "mdy": ["%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y", "%m/%d/%Y %I:%M %p"],
    "any": ["%d %b %Y", "%d-%b-%y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y %H:%M"],
}


def seconds(stamps, form):
    """What the dates are once they were written in a form."""
    known = [datetime.strptime(one.strftime(form), form) for one in stamps]
    return (np.array(known, dtype="datetime64[s]") - ORIGIN).astype(float)


@settings(max_examples=200, deadline=None)
@given(
    stamps=st.lists(st.datetimes(datetime(1970, 1, 1), datetime(2068, 12, 31)), min_size=1),
    kind=st.sampled_from(list(FORMATS)),
    data=st.data(),
)
def test_dates_are_read_as_they_were_written(stamps, kind, data):
    form = data.draw(st.sampled_from(FORMATS[kind]))
    text = pa.array([one.strftime(form) for one in stamps])
    assert are_dates(text)
    order = order_of(text)
    if not order:  # A date that may be either, which the user has to say.
        assert kind in ("dmy", "mdy") and all(max(one.day, one.month) <= 12 for one in stamps)
        order = kind
    elif kind != "any":
        assert order == kind or all(one.day == one.month for one in stamps)
    found = dates_of(pa.chunked_array([text]), "x", order)
    np.testing.assert_array_equal(found, seconds(stamps, form))


@pytest.mark.parametrize(
    "wrong", ["2023-02-30", "2023-13-01", "soon", "01/02/2023", "2023-01-01 25:70"]
)
def test_what_is_no_date_is_named(wrong):
    column = pa.chunked_array([["2023-01-01"] * 9 + [wrong, None, ""]])
    order = order_of(column.combine_chunks())
    with pytest.raises(TableError, match="row 10"):
        dates_of(column, "x", order)
    found = dates_of(pa.chunked_array([["2023-01-01", "NA", None]]), "x", "ymd")
    np.testing.assert_array_equal(np.isnan(found), [False, True, True])


def test_parts_are_those_that_vary():
    def parts(*texts):
        return parts_of(dates_of(pa.chunked_array([texts]), "x", "ymd"))

    assert parts("2024-01-01", "2024-01-08") == ("trend",)
    assert parts("2024-01-01", "2024-12-02") == ("trend", "year")
    assert parts("2024-01-01", "2024-01-02") == ("trend", "weekday")
    assert parts("2024-01-01 10:00", "2024-01-08 11:30") == ("trend", "hour")


def test_features_are_days_season_weekday_and_hour():
    text = ["2000-01-01 06:00", "2024-07-01 18:00", None, "2024-02-29 12:00"]
    encoder, notes = Encoder.of(pa.table({"when": text, "x": [1, 2, 3, 5]}))
    X = encoder.encode(pa.table({"when": text, "x": [1, 2, 3, 5]})).X
    assert notes == [] and list(X)[:3] == ["when", "when year (cos)", "when year (sin)"]
    assert X["when"].iloc[0] == 0.25 and X["when"].iloc[3] == 8825.5
    known = X[[f"when {day}" for day in ("Mon", "Thu", "Sat")]].to_numpy()
    np.testing.assert_array_equal(known[[0, 1, 3]], [[0, 0, 1], [1, 0, 0], [0, 1, 0]])
    np.testing.assert_allclose(X["when hour (sin)"], [1.0, -1.0, 0.0, 0.0], atol=1e-9)
    assert X["when year (cos)"].iloc[0] == 1.0 and X["when year (cos)"].iloc[1] < -0.99
    np.testing.assert_array_equal(X["when missing"], [0, 0, 1, 0])
    assert shown_date(0.25 * 86400) == "2000-01-01 06:00:00"


def draw(rows, seed):
    """Sales that rise, have a season and a weekday, and a level of the store."""
    rng = np.random.default_rng(seed)
    day, store = rng.integers(0, 900, rows), rng.integers(0, 12, rows)
    when = np.datetime64("2022-03-01") + day
    season = np.cos(2.0 * np.pi * day / 365.25)
    y = 0.002 * day + season + (day % 7 == 3) + 0.3 * np.sin(store) + 0.1 * rng.normal(size=rows)
    return pd.DataFrame({"store": store.astype(str), "when": when.astype("datetime64[s]"), "y": y})


def test_frames_and_files_of_dates_have_one_model(tmp_path):
    frame, new = draw(400, 0), draw(200, 1)
    model = fit_table(frame, task="store", target="y", form="linear", score=False)
    assert np.sqrt(np.mean((model.predict(new) - new.y) ** 2)) < 0.2 * new.y.std()
    text = frame.assign(when=frame.when.dt.strftime("%d/%m/%Y"))
    for other in (text, pl.from_pandas(frame)):
        same = fit_table(other, task="store", target="y", form="linear", score=False)
        shown = new.assign(when=new.when.dt.strftime("%d/%m/%Y")) if other is text else new
        np.testing.assert_allclose(same.predict(shown), model.predict(new), rtol=1e-10)
    model.save(tmp_path / "m.comtl")
    np.testing.assert_array_equal(load(tmp_path / "m.comtl").predict(new), model.predict(new))


def test_the_order_may_be_said():
    frame = draw(60, 0).query("when.dt.day <= 12")
    frame = frame.assign(when=frame.when.dt.strftime("%d/%m/%Y"))
    told = {"task": "store", "target": "y", "model": "pooled", "score": False}
    with pytest.raises(TableError, match="--date-format dmy or --date-format mdy"):
        fit_table(frame, **told)
    first, other = (fit_table(frame, date_format=one, **told) for one in ("dmy", "mdy"))
    assert first.encoder.columns[0].order == "dmy" and other.encoder.columns[0].order == "mdy"
    with pytest.raises(ValueError, match="date_format"):
        fit_table(frame, date_format="dym", **told)
