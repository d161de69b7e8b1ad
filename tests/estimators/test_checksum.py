"""A model file whose bytes changed is refused before a booster reads it."""

import copy
import pickle
import random
import re

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

import gbmrank
from gbmrank import GBMRanker
from gbmrank.errors import DataError, GbmrankError
from tests.ranking_tasks import make_task

TASK = make_task(seed=0)
FILES = ["model.txt", "model.ubj", "model.json"]
CHANGED = "is not the file that gbmrank wrote: .* verify=False"
DIGITS = re.compile(rb"[0-9a-f]{64}(?= of this file with zeros here)")


def fitted(file, **params):
    backend = "lightgbm" if file.endswith("txt") else "xgboost"
    model = GBMRanker(backend=backend, n_estimators=2, max_depth=2, n_jobs=1, **params)
    return model.fit(TASK.x, TASK.y, qid=TASK.qid)


@pytest.fixture(params=FILES)
def saved(request, tmp_path):
    path = tmp_path / request.param
    fitted(request.param).save(path)
    return path


def refused(path, data):
    path.write_bytes(data)
    with pytest.raises(GbmrankError) as found:
        gbmrank.load(path)
    return str(found.value)


def without_checksum(data):
    """Return the file that gbmrank 0.1.0 wrote before there were checksums."""
    if data.startswith(b"tree"):
        return re.sub(rb"gbmrank_sha256=.*\n", b"", data)
    booster = xgb.Booster(model_file=bytearray(data))
    booster.set_attr(gbmrank_sha256=None)
    return bytes(booster.save_raw("json" if data[1:2] == b'"' else "ubj"))


def test_bits_of_the_checksum_and_its_name_are_refused(saved):
    whole = saved.read_bytes()
    first, last = whole.index(b"gbmrank_sha256"), whole.index(b"zeros here") + len("zeros here")
    for at in range(first, last):
        for bit in range(8):
            changed = bytearray(whole)
            changed[at] ^= 1 << bit
            assert re.search(CHANGED, refused(saved, changed)), (at, bit)


def test_cut_lengthened_and_mixed_files_are_refused(saved):
    whole, draw = saved.read_bytes(), random.Random(1)
    for length in {0, 1, 2, 8, len(whole) - 1, *draw.sample(range(len(whole)), 300)}:
        refused(saved, whole[:length])
    for more in (b"\0", b"\n", b" ", b"}", b"x" * 999, whole):
        assert re.search(CHANGED, refused(saved, whole + more))
    checksum = whole.index(b"zeros here") + len("zeros here")
    for _ in range(300):
        first, last = sorted(draw.sample(range(checksum, len(whole)), 2))
        refused(saved, whole[:first] + whole[last:])
        refused(saved, whole[:first] + draw.randbytes(last - first) + whole[last:])
    other = saved.with_stem("other")
    fitted(saved.name, learning_rate=0.7).save(other)
    middle = len(whole) // 2
    refused(saved, whole[:middle] + other.read_bytes()[middle:])
    [digits] = DIGITS.findall(other.read_bytes())
    assert re.search(CHANGED, refused(saved, DIGITS.sub(digits, whole)))


def test_converted_line_ends_are_refused(tmp_path):
    path = tmp_path / "model.txt"
    fitted("model.txt").save(path)
    assert re.search(
        "converted line ends", refused(path, path.read_bytes().replace(b"\n", b"\r\n"))
    )
    assert gbmrank.load(path, verify=False).n_features_in_ == 5


def test_a_folder_and_a_swapped_name(saved):
    with pytest.raises(DataError, match="is a folder"):
        gbmrank.load(saved.parent)
    expected = gbmrank.load(saved).predict(TASK.x).tolist()
    swapped = saved.with_name("model.other")
    saved.rename(swapped)
    assert gbmrank.load(swapped).predict(TASK.x).tolist() == expected


def test_files_without_a_checksum_are_read_as_before(saved):
    expected, whole = gbmrank.load(saved).predict(TASK.x).tolist(), saved.read_bytes()
    earlier = without_checksum(whole)
    assert b"sha256" not in earlier
    saved.write_bytes(earlier)
    again = gbmrank.load(saved)
    assert again.predict(TASK.x).tolist() == expected
    assert "is a damaged" in refused(saved, earlier[:-9])
    again.save(saved)
    assert saved.read_bytes() == whole


def test_saving_gives_the_same_bytes_from_copies_and_pickles_too(saved):
    whole, model = saved.read_bytes(), gbmrank.load(saved)
    for each in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):  # noqa: S301
        for _ in range(2):
            each.save(saved)
            assert saved.read_bytes() == whole
        each.booster_.save_model(str(saved))  # of the booster, without a checksum
        assert gbmrank.load(saved).predict(TASK.x).tolist() == model.predict(TASK.x).tolist()
    fresh = fitted(saved.name)
    fresh.save(saved)
    assert saved.read_bytes() == whole


def test_a_ranker_pickled_before_there_were_checksums_is_saved_with_one(tmp_path):
    model = fitted("model.ubj")
    model.booster_.set_attr(gbmrank_sha256=None)
    earlier = pickle.loads(pickle.dumps(model))  # noqa: S301
    earlier.save(tmp_path / "model.ubj")
    whole = (tmp_path / "model.ubj").read_bytes()
    assert DIGITS.search(whole)
    assert re.search(CHANGED, refused(tmp_path / "model.ubj", whole[:-9] + b"x" + whole[-8:]))


def test_lightgbm_leaves_the_checksum_out_when_it_saves(tmp_path):
    path, data = tmp_path / "model.txt", lgb.Dataset(TASK.x, TASK.y, group=TASK.sizes)
    fitted("model.txt").save(path)
    own = without_checksum(path.read_bytes())
    lgb.Booster(model_file=str(path)).save_model(str(path))
    assert path.read_bytes() == own
    params = {"objective": "lambdarank", "verbosity": -1, "num_threads": 1}
    longer = lgb.train(params, data, 3, init_model=str(path))
    longer.save_model(str(path))
    assert lgb.Booster(model_file=str(path)).num_trees() == 5


@pytest.mark.parametrize("file", FILES[1:])
def test_what_xgboost_changed_and_saved_is_read_when_asked_for(file, tmp_path):
    path = tmp_path / file
    model = fitted(file)
    model.save(path)
    booster = xgb.Booster(model_file=str(path))
    booster.save_model(str(path))  # unchanged, to the byte
    gbmrank.load(path)
    booster.set_attr(note="mine")
    booster.save_model(str(path))
    with pytest.raises(DataError, match=CHANGED):
        gbmrank.load(path)
    again = gbmrank.load(path, verify=False)
    np.testing.assert_array_equal(again.predict(TASK.x), model.predict(TASK.x))
    again.save(path)
    assert gbmrank.load(path).booster_.attr("note") == "mine"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="damaged XGBoost model"):
        gbmrank.load(path, verify=False)


def test_names_that_look_like_the_checksum_do_no_harm(tmp_path):
    pd = pytest.importorskip("pandas")
    names = "gbmrank_sha256", "0123456789abcdef" * 4 + " of this file with zeros here"
    frame = pd.DataFrame(TASK.x[:, :2], columns=names)
    for file, backend in zip(FILES, ("lightgbm", "xgboost", "xgboost"), strict=True):
        model = GBMRanker(backend=backend, n_estimators=2).fit(frame, TASK.y, qid=TASK.qid)
        model.save(tmp_path / file)
        again = gbmrank.load(tmp_path / file)
        assert again.feature_names_in_.tolist() == list(names)


def test_a_hostile_model_of_lightgbm_is_read_in_time_of_its_length(tmp_path):
    path = tmp_path / "model.txt"
    fitted("model.txt").save(path)
    text = re.sub(r"\[data: .*\]\n", "", path.read_text())
    hostile = text.replace("[objective: ", "[data: \n" * 300_000 + "[objective: ", 1)
    assert len(hostile) > 2_000_000  # minutes, if each of these lines were read to the end
    path.write_text(hostile)
    with pytest.raises(DataError):  # it tells no objective of gbmrank any more
        gbmrank.load(path, verify=False)
