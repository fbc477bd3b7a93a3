// The roofline: what kernels reach, by how many operations they make of a byte.

import uPlot from "./vendor/uplot.mjs";
import { color, element, rate } from "./format.js";

/** List the measured kernels as points: operations a byte, operations and bytes a second. */
export function points(plan) {
  const found = plan.steps.flatMap((step, number) => {
    const kernel = step.kernels.length === 1 ? plan.kernels[step.kernels[0]] : null;
    if (!kernel || !step.seconds || !kernel.flops || !kernel.bytes) {
      return [];
    }
    const intensity = kernel.flops / kernel.bytes;
    const reached = { flops: kernel.flops / step.seconds, bytes: kernel.bytes / step.seconds };
    return [{ number, title: step.title, intensity, ...reached }];
  });
  return found.sort((a, b) => a.intensity - b.intensity);
}

export function drawRoofline(place, plan, onSelect) {
  const found = points(plan);
  if (!found.length) {
    const text = "No kernel was measured: show a function, or python -m picograd.view script.py.";
    place.replaceChildren(element("p", { class: "soft" }, text));
    return;
  }
  const bandwidth = Math.max(...found.map((each) => each.bytes));
  const arithmetic = Math.max(...found.map((each) => each.flops));
  const intensities = found.map((each) => each.intensity);
  const roof = intensities.map((each) => Math.min(each * bandwidth, arithmetic) / 1e9);
  const reached = found.map((each) => each.flops / 1e9);
  const words = element("p", { class: "soft" }, caption(bandwidth, arithmetic));
  const holder = element("div");
  place.replaceChildren(words, holder);
  const axis = { stroke: color("text"), grid: { stroke: color("line"), width: 1 } };
  const chart = new uPlot(
    {
      width: Math.max(place.clientWidth - 40, 200), height: 165, legend: { show: false },
      scales: { x: { time: false, distr: 3 }, y: { distr: 3 } },
      axes: [{ ...axis, size: 30 }, { ...axis, size: 60 }],
      series: [
        {}, { stroke: color("soft"), dash: [6, 4], points: { show: false } },
        { stroke: color("accent"), paths: () => null, points: { show: true, size: 8 } },
      ],
      hooks: {
        setCursor: [(self) => {
          const point = found[self.cursor.idx];
          words.textContent = point ? describe(point) : caption(bandwidth, arithmetic);
        }],
      },
    },
    [intensities, roof, reached], holder,
  );
  chart.over.addEventListener("click", () => {
    const point = found[chart.cursor.idx];
    if (point) {
      onSelect(`s${point.number}`);
    }
  });
}

function caption(bandwidth, arithmetic) {
  const best = `${rate(bandwidth, 1, "B/s")} and ${rate(arithmetic, 1, "FLOP/s")}`;
  const roof = `The roof is the best that any kernel here reached: ${best}.`;
  return `GFLOP/s over operations a byte. ${roof}`;
}

function describe({ number, title, flops, bytes }) {
  return `${number} ${title}: ${rate(flops, 1, "FLOP/s")}, ${rate(bytes, 1, "B/s")}`;
}
