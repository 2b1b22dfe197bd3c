"""A task's files as its tools see them: reading, writing, quotas, the newest picture."""

import asyncio
import hashlib
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gta_bench.confine.workspace import Quota, Workspace
from gta_bench.errors import EnvironmentProblem, ToolError

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
JPEG = b"\xff\xd8\xff\xe0" + bytes(20)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "dataset" / "menu.jpg"
    file.parent.mkdir()
    file.write_bytes(JPEG)
    return file


@pytest.fixture
def space(tmp_path: Path, source: Path) -> Workspace:
    return Workspace.create(tmp_path / "task", {"inputs/menu.jpg": source})


class TestCreating:
    def test_attachments_are_copies_that_cannot_be_written(
        self, space: Workspace, source: Path
    ) -> None:
        copy = space.root / "inputs" / "menu.jpg"
        assert copy.read_bytes() == JPEG
        assert copy.stat().st_mode & 0o777 == 0o444
        assert copy.stat().st_ino != source.stat().st_ino

    @pytest.mark.parametrize(
        "path", ["outputs/a", "menu.jpg", "inputs/", "inputs/a/b", "inputs/..", "inputs/a\nb", "/x"]
    )
    def test_a_path_that_is_no_plain_input_is_refused(
        self, tmp_path: Path, source: Path, path: str
    ) -> None:
        with pytest.raises(EnvironmentProblem, match="not a plain path"):
            Workspace.create(tmp_path / "task", {path: source})

    def test_a_missing_attachment_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(EnvironmentProblem, match=r"gone\.jpg.*No such file"):
            Workspace.create(tmp_path / "task", {"inputs/a.jpg": tmp_path / "gone.jpg"})

    def test_a_link_in_the_dataset_is_followed_only_if_asked(
        self, tmp_path: Path, source: Path
    ) -> None:
        link = tmp_path / "link.jpg"
        link.symlink_to(source)
        with pytest.raises(EnvironmentProblem, match="Links are not followed"):
            Workspace.create(tmp_path / "one", {"inputs/a.jpg": link})
        space = Workspace.create(tmp_path / "two", {"inputs/a.jpg": link}, follow_links=True)
        assert space.read("inputs/a.jpg") == JPEG

    def test_an_attachment_beyond_the_quota_is_refused(self, tmp_path: Path, source: Path) -> None:
        with pytest.raises(EnvironmentProblem, match="larger than 5 bytes"):
            Workspace.create(
                tmp_path / "task", {"inputs/a.jpg": source}, quota=Quota(input_bytes=5)
            )

    def test_the_same_task_twice_is_refused(self, space: Workspace, source: Path) -> None:
        with pytest.raises(EnvironmentProblem, match="already"):
            Workspace.create(space.root, {"inputs/menu.jpg": source})

    def test_a_workspace_can_be_sent_to_another_process(self, space: Workspace) -> None:
        assert pickle.loads(pickle.dumps(space)) == space


class TestReading:
    @pytest.mark.parametrize(
        "spelling",
        [
            "inputs/menu.jpg",
            "./inputs/menu.jpg",
            "././inputs/./menu.jpg",
            "/inputs/menu.jpg",
            "inputs//menu.jpg",
            "inputs\\menu.jpg",
            "menu.jpg",
            "./menu.jpg",
            "/menu.jpg",
            "  inputs/menu.jpg\n",
            '"inputs/menu.jpg"',
            "'menu.jpg'",
            "`inputs/menu.jpg`",
        ],
    )
    def test_an_agents_spelling_is_understood(self, space: Workspace, spelling: str) -> None:
        assert space.resolve(spelling) == "inputs/menu.jpg"
        assert space.read(spelling) == JPEG

    def test_a_name_that_both_folders_have_must_be_written_out(self, space: Workspace) -> None:
        space.write("menu.jpg", PNG)
        with pytest.raises(ToolError, match=r"`inputs/menu\.jpg` or `outputs/menu\.jpg`"):
            space.read("menu.jpg")
        assert space.read("outputs/menu.jpg") == PNG

    def test_outputs_can_be_read_again(self, space: Workspace) -> None:
        assert space.read(space.write("a.txt", b"hello").path) == b"hello"

    def test_any_unicode_form_of_a_name_is_found(self, tmp_path: Path, source: Path) -> None:
        space = Workspace.create(tmp_path / "t", {"inputs/été.jpg": source})
        assert space.resolve("inputs/e\u0301te\u0301.jpg") == "inputs/été.jpg"
        (space.root / "outputs" / "cafe\u0301.txt").write_bytes(b"x")
        assert space.read("outputs/café.txt") == b"x"

    def test_an_unknown_file_is_answered_with_those_there_are(self, space: Workspace) -> None:
        with pytest.raises(ToolError, match=r"no file 'inputs/x\.png'.*`inputs/menu.jpg`"):
            space.read("inputs/x.png")

    def test_the_answer_does_not_grow_with_the_number_of_files(self, space: Workspace) -> None:
        for number in range(40):
            space.write(f"{number}.txt", b"")
        with pytest.raises(ToolError, match="and 21 more") as caught:
            space.read("x")
        assert len(str(caught.value)) < 700

    def test_no_message_ever_holds_a_path_of_the_host(self, space: Workspace) -> None:
        (space.root / "outputs" / "folder").mkdir()
        for spelling in ("x", "../x", "inputs/x", "outputs", "outputs/folder", "/etc/passwd"):
            with pytest.raises(ToolError) as caught:
                space.read(spelling)
            assert str(space.root.parent) not in str(caught.value)

    def test_a_file_larger_than_asked_for_is_refused(self, space: Workspace) -> None:
        with pytest.raises(ToolError, match="24 bytes; at most 10"):
            space.read("menu.jpg", most_bytes=10)

    def test_an_open_file_can_be_read_in_pieces(self, space: Workspace) -> None:
        with space.open("menu.jpg") as stream:
            assert stream.read(3) == b"\xff\xd8\xff"


class TestImages:
    def test_a_list_or_a_text_with_commas_names_images(self, space: Workspace) -> None:
        space.write("b.png", PNG)
        expected = ("inputs/menu.jpg", "outputs/b.png")
        assert space.resolve_images("inputs/menu.jpg, outputs/b.png") == expected
        assert space.resolve_images(["menu.jpg", "b.png"]) == expected
        assert space.resolve_images("") == ()

    def test_what_is_no_image_is_refused_whatever_its_name(self, space: Workspace) -> None:
        space.write("fake.png", b"<html>")
        with pytest.raises(ToolError, match=r"`outputs/fake\.png` is not an image"):
            space.resolve_images(["fake.png"])

    def test_the_newest_image_is_the_one_written_last(self, space: Workspace) -> None:
        assert space.newest_image() is None
        for name in ("b.png", "a.png", "c.png"):
            space.write(name, PNG)
        space.write("later.txt", b"no image")
        assert space.newest_image() == "outputs/c.png"

    def test_images_written_within_one_tick_of_the_clock_keep_their_order(
        self, space: Workspace
    ) -> None:
        for number in range(50):
            written = space.write("same.png", PNG)
            assert space.newest_image() == written.path, number

    def test_overwriting_makes_an_image_the_newest(self, space: Workspace) -> None:
        space.write("a.png", PNG)
        space.write("b.png", PNG)
        space.write("a.png", JPEG, overwrite=True)
        assert space.newest_image() == "outputs/a.png"


class TestWriting:
    def test_a_file_comes_with_its_path_size_and_digest(self, space: Workspace) -> None:
        written = space.write("a.txt", b"hello")
        assert written.path == "outputs/a.txt"
        assert written.bytes == 5
        assert written.sha256 == hashlib.sha256(b"hello").hexdigest()
        assert space.outputs().files == (written,)

    def test_a_taken_name_gets_a_number(self, space: Workspace) -> None:
        paths = [space.write("plot", PNG, suffix=".png").path for _ in range(3)]
        assert paths == ["outputs/plot.png", "outputs/plot-2.png", "outputs/plot-3.png"]

    def test_a_taken_name_is_replaced_if_that_is_chosen(self, space: Workspace) -> None:
        space.write("a.txt", b"old")
        assert space.write("a.txt", b"new", overwrite=True).path == "outputs/a.txt"
        assert space.read("outputs/a.txt") == b"new"

    def test_a_folder_is_never_replaced(self, space: Workspace) -> None:
        (space.root / "outputs" / "a.txt").mkdir()
        with pytest.raises(ToolError, match="is a folder"):
            space.write("a.txt", b"x", overwrite=True)

    def test_nothing_half_written_is_left(self, space: Workspace) -> None:
        space.write("a.txt", b"x")
        with pytest.raises(ToolError):
            space.write("..", b"x")
        assert list((space.root / ".partial").iterdir()) == []

    def test_threads_may_write_at_the_same_time(self, space: Workspace) -> None:
        with ThreadPoolExecutor(8) as pool:
            paths = {
                done.path for done in pool.map(lambda i: space.write("x", b"%d" % i), range(40))
            }
        assert len(paths) == 40 == len(space.outputs().files)

    def test_threads_together_stay_within_the_quota(self, tmp_path: Path) -> None:
        space = Workspace.create(tmp_path / "q", {}, quota=Quota(files=10))

        def attempt(_: int) -> bool:
            try:
                space.write("x", b"1")
            except ToolError:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(attempt, range(40))) == 10

    def test_writing_works_off_the_event_loop(self, space: Workspace) -> None:
        written = asyncio.run(asyncio.to_thread(space.write, "a.txt", b"x"))
        assert written.path == "outputs/a.txt"


class TestQuotas:
    def test_a_file_that_is_too_large_is_refused(self, tmp_path: Path) -> None:
        space = Workspace.create(tmp_path / "q", {}, quota=Quota(file_bytes=10))
        space.write("fits", b"x" * 10)
        with pytest.raises(ToolError, match="11 bytes; at most 10"):
            space.write("large", b"x" * 11)

    def test_files_that_are_too_large_together_are_refused(self, tmp_path: Path) -> None:
        space = Workspace.create(tmp_path / "q", {}, quota=Quota(total_bytes=25))
        space.write("a", b"x" * 20)
        with pytest.raises(ToolError, match="room for 5"):
            space.write("b", b"x" * 6)
        space.write("b", b"x" * 5)

    def test_too_many_files_are_refused(self, tmp_path: Path) -> None:
        space = Workspace.create(tmp_path / "q", {}, quota=Quota(files=2))
        space.write("a", b"")
        space.write("b", b"")
        with pytest.raises(ToolError, match="2 output files; no more"):
            space.write("c", b"")

    def test_replacing_a_file_counts_only_the_new_one(self, tmp_path: Path) -> None:
        space = Workspace.create(tmp_path / "q", {}, quota=Quota(total_bytes=10, files=1))
        space.write("a", b"x" * 10)
        space.write("a", b"y" * 10, overwrite=True)
        assert space.read("a") == b"y" * 10

    def test_what_was_put_there_by_others_counts(self, tmp_path: Path) -> None:
        space = Workspace.create(tmp_path / "q", {}, quota=Quota(total_bytes=10))
        (space.root / "outputs" / "by-harness").write_bytes(b"x" * 8)
        with pytest.raises(ToolError, match="room for 2"):
            space.write("a", b"xyz")
