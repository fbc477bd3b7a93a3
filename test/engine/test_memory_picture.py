"""A picture of the memory in use."""

from picograd.engine.memory_picture import POINTS, memory_picture


def test_picture_of_many_samples_keeps_the_peak_and_stays_small():
    samples = [(n / 1e5, 1000) for n in range(100_000)]
    samples[54_321] = (0.54321, 1 << 30)
    picture = memory_picture({"cpu": samples, "<cuda>": []}, 1.0)
    assert picture.count(",") < 3 * POINTS and "peak 1.0 GiB" in picture
    assert "&lt;cuda&gt;: peak 0 B" in picture and ",40.0 " in picture
