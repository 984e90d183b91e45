"""Files that are there whole or not at all, whoever writes them."""

import multiprocessing
import os
import stat
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import comtl
from comtl.baselines import PooledRegressor
from comtl.saving.writing import PARTS, write_atomically

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="changes owners, which only root may")


def parts(folder):
    return [file.name for file in folder.iterdir() if file.name.startswith(PARTS[0])]


def model(size):
    X = np.random.default_rng(size).normal(size=(30, size))
    return PooledRegressor().fit(X, X[:, 0])


def save_many(path, seed, count):
    """Save models of different sizes to one path, again and again."""
    models = [model(size) for size in (2, 30, 400)]
    for number in range(count):
        models[(number + seed) % 3].save(path)


def test_threads_and_processes_save_to_one_path(tmp_path):
    path = tmp_path / "m.comtl"
    model(2).save(path)
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=save_many, args=(path, seed, 60)) for seed in range(2)]
    for process in processes:
        process.start()
    done, read = threading.Event(), []

    def reader():
        while not done.is_set():
            read.append(comtl.load(path).n_features_in_)

    with ThreadPoolExecutor(10) as pool:
        readers = [pool.submit(reader) for _ in range(2)]
        writers = [pool.submit(save_many, path, seed, 20) for seed in range(8)]
        for writer in writers:
            writer.result()
        for process in processes:
            process.join()
        done.set()
        for one in readers:
            one.result()
    assert [process.exitcode for process in processes] == [0, 0]
    assert len(read) > 20 and set(read) <= {2, 30, 400}
    assert [file.name for file in tmp_path.iterdir()] == ["m.comtl"]


def test_writers_with_one_process_number_do_not_meet(tmp_path, monkeypatch):
    # As in two containers on one volume.
    monkeypatch.setattr(os, "getpid", lambda: 7)
    contents = [bytes([number]) * 300_000 for number in range(8)]
    path = tmp_path / "file"
    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(write_atomically, path, one) for one in contents * 10]:
            future.result()
    assert path.read_bytes() in contents and not parts(tmp_path)


def test_leftovers_of_killed_writers_are_removed_but_not_those_of_live_ones(tmp_path):
    code = """
        import os, sys, time
        from comtl.saving import writing
        live = sys.argv[2] == "live"
        def wait(file):
            print("ready", flush=True)
            time.sleep(60) if live else os.kill(os.getpid(), 9)
        writing.to_disk = wait
        writing.write_atomically(sys.argv[1] + "/m.comtl", b"new")
    """
    children = []
    for kind in ("live", "killed"):
        arguments = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path), kind]
        children.append(subprocess.Popen(arguments, stdout=subprocess.PIPE))
        children[-1].stdout.readline()
    children[1].wait()
    assert len(parts(tmp_path)) == 2
    write_atomically(tmp_path / "other", b"content")
    assert len(parts(tmp_path)) == 1
    children[0].kill()
    for child in children:
        child.wait()
        child.stdout.close()
    write_atomically(tmp_path / "other", b"content")
    assert not parts(tmp_path)


def test_a_part_that_was_swept_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    from comtl.saving import writing

    lock, swept = writing._lock, []

    def late(file, wait):
        if wait and len(swept) < 3:
            swept.append(file.name)
            os.unlink(file.name)
        return lock(file, wait)

    monkeypatch.setattr(writing, "_lock", late)
    write_atomically(tmp_path / "file", b"content")
    assert (tmp_path / "file").read_bytes() == b"content" and len(swept) == 3


def test_a_failed_write_leaves_the_old_file_alone(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def full(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("comtl.saving.writing.to_disk", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old" and not parts(tmp_path)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755])
def test_the_mode_of_a_file_is_kept(mode, tmp_path):
    path = tmp_path / "m.comtl"
    path.write_bytes(b"")
    path.chmod(mode)
    model(2).save(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_mode_of_the_user(tmp_path):
    (tmp_path / "usual").touch()
    write_atomically(tmp_path / "file", b"content")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "usual").stat().st_mode


@needs_root
def test_the_owner_of_a_file_is_kept(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    os.chown(path, 1234, 4321)
    write_atomically(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)
    assert path.read_bytes() == b"new"


def test_a_read_only_file_is_kept_also_by_root(tmp_path):
    path = tmp_path / "m.comtl"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(PermissionError, match="read-only"):
        model(2).save(path)
    assert path.read_bytes() == b"old" and not parts(tmp_path)


def test_links_are_followed(tmp_path):
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
    target, link = tmp_path / "there" / "file", tmp_path / "here" / "link"
    link.symlink_to("../there/file")
    for content in (b"first", b"second"):
        write_atomically(link, content)
        assert link.is_symlink() and target.read_bytes() == content
    assert len(list((tmp_path / "here").iterdir())) == 1


def test_a_pipe_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        content = pool.submit(pipe.read_bytes)
        model(2).save(pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    (tmp_path / "m.comtl").write_bytes(content.result())
    assert comtl.load(tmp_path / "m.comtl").n_features_in_ == 2


@needs_root
def test_a_device_is_written_to(tmp_path):
    node = tmp_path / "null"
    try:
        os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        node.write_bytes(b"")
    except OSError:
        pytest.skip("nodes cannot be made or used in this folder")
    model(2).save(node)
    assert stat.S_ISCHR(node.stat().st_mode)
