import asyncio
import shutil
from pathlib import Path

import pytest

from gta_bench.confine import probe
from gta_bench.confine.inside import landlock
from gta_bench.settings import Settings
from gta_bench.tools.contract import Unavailable
from gta_bench.tools.equipment import close_equipment, open_equipment, use_equipment
from gta_bench.tools.fonts import FontFace, faces
from gta_bench.tools.packages import find_missing, name_and_version


@pytest.fixture
def no_jail_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without bubblewrap and with a kernel without Landlock."""
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(landlock, "abi", lambda: 0)


def test_the_jail_that_works_here_is_found_and_threads_are_bounded() -> None:
    async def look() -> None:
        async with use_equipment(Settings()) as equipment:
            found = await probe.probe()
            if not any(entry.works for entry in found):
                pytest.skip("no jail here")
            assert equipment.need_jail().kind == next(e.kind for e in found if e.works)
            assert await equipment.in_thread(max, 3, 5) == 5

    asyncio.run(look())


def test_without_a_jail_the_reason_is_kept_and_other_tools_work(no_jail_here: None) -> None:
    equipment = asyncio.run(open_equipment(Settings()))
    assert equipment.jail is None
    assert isinstance(equipment.no_jail, Unavailable)
    assert "bubblewrap is not installed" in equipment.no_jail.reason
    assert "apt install bubblewrap" in equipment.no_jail.fix
    assert asyncio.run(equipment.in_thread(max, 3, 5)) == 5
    close_equipment(equipment)


def test_doing_without_a_jail_is_an_explicit_wish(no_jail_here: None) -> None:
    equipment = asyncio.run(open_equipment(Settings(), unsafe_no_jail=True))
    assert equipment.need_jail().kind == "none"
    close_equipment(equipment)


def test_closed_equipment_runs_nothing_more() -> None:
    equipment = asyncio.run(open_equipment(Settings()))
    close_equipment(equipment)
    with pytest.raises(RuntimeError):
        asyncio.run(equipment.in_thread(max, 3, 5))


class TestPackages:
    def test_one_that_is_here_is_named_with_its_version(self) -> None:
        assert find_missing("pydantic") is None
        assert name_and_version("pydantic").startswith("pydantic 2.")

    def test_those_that_are_missing_are_named_with_the_extra(self) -> None:
        assert find_missing("no_such_one") == Unavailable(
            "no_such_one is not installed.", "pip install 'gta-bench[tools]'"
        )
        assert find_missing("json", "no_such_one", "nor_this", extra="media") == Unavailable(
            "no_such_one and nor_this are not installed.", "pip install 'gta-bench[media]'"
        )

    def test_one_without_metadata_has_no_version(self) -> None:
        assert name_and_version("no-such-package", "pydantic").startswith("no-such-package, pydan")


class TestFonts:
    def test_a_cjk_font_is_preferred_in_its_simplified_face(self, tmp_path: Path) -> None:
        (tmp_path / "noto").mkdir()
        (tmp_path / "DejaVuSans.ttf").touch()
        cjk = tmp_path / "noto" / "NotoSansCJK-Regular.ttc"
        cjk.touch()
        assert next(faces((tmp_path,))) == FontFace("Noto Sans CJK SC", cjk, 2, cjk=True)

    def test_dejavu_is_next_and_known_to_lack_cjk(self, tmp_path: Path) -> None:
        file = tmp_path / "DejaVuSans.ttf"
        file.touch()
        assert next(faces((tmp_path,))) == FontFace("DejaVu Sans", file, 0, cjk=False)

    def test_folders_that_are_not_there_are_no_error(self, tmp_path: Path) -> None:
        assert all(not face.cjk for face in faces((tmp_path / "none",)))
