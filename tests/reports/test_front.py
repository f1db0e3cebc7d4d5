"""Fronts: distances from the rays, volume, which rays can be reached, the figure."""

import sys

import numpy as np
import pytest

from common.errors import UserError
from common.json_files import write_json
from reports.figures import new_figure
from reports.front import Front, draw_fronts, draw_points, front_table, main, reachable


def front(losses, preferences=((0.5, 0.5), (0.2, 0.8)), method="EPO"):
    names = ("sst", "sts", "qqp")[: len(losses[0])]
    return Front(method, names, np.array(preferences), np.array(losses), np.ones(len(names)))


def test_a_point_on_its_ray_has_no_distance():
    found = front([(0.3, 0.3), (0.4, 0.1)]).distances()
    np.testing.assert_allclose(found, 0, atol=1e-12)
    assert front([(0.3, 0.1), (0.4, 0.1)]).distances()[0] > 0.05


def test_losses_are_relative_to_their_reference():
    one = front([(0.3, 0.3), (0.4, 0.1)])
    other = Front("EPO", one.objectives, one.preferences, one.losses * [1, 50], np.array([1, 50]))
    np.testing.assert_allclose(other.distances(), one.distances(), atol=1e-12)
    assert other.hypervolume() == pytest.approx(one.hypervolume())


def test_the_volume_is_a_share_of_the_volume_below_the_reference():
    assert front([(0.5, 0.5)], [(0.5, 0.5)]).hypervolume() == pytest.approx(0.25)
    assert front([(0.5, 0.2), (0.2, 0.5)]).hypervolume() == pytest.approx(0.4 + 0.4 - 0.25)
    assert front([(1.5, 0.2), (2.0, 0.5)]).hypervolume() == 0
    three = front([(0.5, 0.5, 0.5)], [(0.2, 0.3, 0.5)])
    assert three.hypervolume() == pytest.approx(0.125)


def test_rays_outside_all_points_do_not_count():
    wishes = [(0.5, 0.5), (0.01, 0.99), (0.99, 0.01)]
    points = [(0.3, 0.3), (0.6, 0.2), (0.2, 0.6)]
    assert reachable([front(points, wishes)]).tolist() == [True, False, False]
    header, rows = front_table([front(points, wishes)])
    assert dict(zip(header, rows[0], strict=True)) == {
        "method": "EPO",
        "reachable rays": "1 of 3",
        "mean non-uniformity": "0.0000",
        "hypervolume": f"{front(points, wishes).hypervolume():.4f}",
    }


@pytest.mark.parametrize("objectives", [2, 3])
def test_the_figure_is_drawn(tmp_path, objectives):
    losses = np.random.default_rng(0).uniform(0.1, 1, (4, objectives))
    fronts = [
        Front(m, ("a", "b", "c")[:objectives], 1 / losses, losses, np.ones(objectives))
        for m in ("EPO", "linear")
    ]
    draw_fronts(fronts, tmp_path / "front.png")
    assert [path.name for path in tmp_path.iterdir()] == ["front.png"]
    assert (tmp_path / "front.png").read_bytes().startswith(b"\x89PNG")


def test_sweeps_of_the_same_preferences_are_drawn_side_by_side(tmp_path, monkeypatch, capsys):
    def sweep(name, content):
        (tmp_path / name).mkdir()
        write_json(tmp_path / name / "front.json", content.to_json())
        return str(tmp_path / name)

    points = [(0.3, 0.3), (0.4, 0.1)]
    folders = [sweep("epo", front(points)), sweep("linear", front(points, method="linear"))]
    output = tmp_path / "both.png"
    monkeypatch.setattr(sys, "argv", ["front", *folders, "--output", str(output)])
    main()
    assert output.exists()
    table = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in table[-2:]] == ["EPO", "linear"]
    other = sweep("other", front(points, [(0.5, 0.5), (0.3, 0.7)], "linear"))
    monkeypatch.setattr(sys, "argv", ["front", folders[0], other, "--output", str(output)])
    with pytest.raises(UserError, match=r"other/front\.json: expected the preferences of"):
        main()


def test_the_points_of_a_front_stand_on_an_axis_with_their_rays():
    one = front([(0.3, 0.3), (0.4, 0.1)])
    _, axis = new_figure(3, 3)
    draw_points(axis, one, 0, 1)
    assert axis.collections[0].get_offsets().tolist() == one.losses.tolist()
    slopes = [line.get_xy2()[1] / line.get_xy2()[0] for line in axis.lines]
    assert slopes == pytest.approx([1, 0.25])  # rays along 1 / preference
