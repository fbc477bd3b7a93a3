// Launches in the order they run, as wide as they took, above the memory in use.

import { bytes, color, element, seconds } from "./format.js";
import { kindColor } from "./model.js";

const BAR = 46;
const CURVE = 110;
const HEAD = 16;

/** Find where every launch begins and ends, in seconds; without times each takes one. */
export function spans(plan) {
  const isTimed = plan.steps.some((step) => step.seconds !== null);
  const ends = [0];
  for (const step of plan.steps) {
    ends.push(ends.at(-1) + (isTimed ? step.seconds ?? 0 : 1));
  }
  return { isTimed, ends };
}

/** Find the bytes of temporaries and outputs that are held while each step runs. */
export function held(plan) {
  const change = new Float64Array(plan.steps.length + 1);
  for (const slot of plan.slots) {
    if (slot.kind === "input" || slot.first < 0) {
      continue;
    }
    change[slot.first] += slot.bytes;
    if (slot.kind === "temporary") {
      change[slot.last + 1] -= slot.bytes;
    }
  }
  let now = 0;
  return plan.steps.map((_, number) => (now += change[number]));
}

export class Timeline {
  constructor(place, plan, onSelect) {
    Object.assign(this, { place, plan });
    Object.assign(this, spans(plan));
    this.held = held(plan);
    this.canvas = element("canvas", { "aria-label": "timeline", tabindex: 0 });
    this.canvas.addEventListener("click", (event) => {
      const number = this.stepAt(event.offsetX);
      if (number >= 0) {
        onSelect(`s${number}`);
      }
    });
    this.canvas.addEventListener("mousemove", (event) => {
      const number = this.stepAt(event.offsetX);
      this.canvas.title = number < 0 ? "" : this.describe(number);
    });
    place.replaceChildren(this.canvas);
    this.draw("");
  }

  describe(number) {
    const step = this.plan.steps[number];
    return `${number} ${step.title}: ${seconds(step.seconds)}, ${bytes(this.held[number])} held`;
  }

  stepAt(x) {
    const time = (x / this.canvas.clientWidth) * this.ends.at(-1);
    return this.ends.findIndex((end) => end > time) - 1;
  }

  draw(selected) {
    const { canvas, plan, ends } = this;
    const wide = Math.max(this.place.clientWidth - 24, 100);
    const high = 2 * HEAD + BAR + CURVE;
    const ratio = window.devicePixelRatio || 1;
    canvas.width = wide * ratio;
    canvas.height = high * ratio;
    canvas.style.width = `${wide}px`;
    canvas.style.height = `${high}px`;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const scale = wide / (ends.at(-1) || 1);
    plan.steps.forEach((step, number) => {
      const x = ends[number] * scale;
      const width = Math.max((ends[number + 1] - ends[number]) * scale, 0.5);
      pen.fillStyle = kindColor(step.kind);
      pen.fillRect(x, HEAD, width > 3 ? width - 1 : width, BAR);
      if (`s${number}` === selected) {
        pen.strokeStyle = color("accent");
        pen.lineWidth = 3;
        pen.strokeRect(x, HEAD, width, BAR);
      }
      if (width > 40 && pen.measureText(step.title).width + 8 < width) {
        pen.fillStyle = "#111418";
        pen.fillText(step.title, x + 4, HEAD + BAR / 2);
      }
    });
    this.drawMemory(pen, scale);
    this.drawWords(pen);
  }

  drawMemory(pen, scale) {
    const most = Math.max(1, this.held.reduce((a, b) => Math.max(a, b), 0));
    const bottom = 2 * HEAD + BAR + CURVE - 4;
    pen.beginPath();
    pen.moveTo(0, bottom);
    this.held.forEach((size, number) => {
      const y = bottom - ((CURVE - 12) * size) / most;
      pen.lineTo(this.ends[number] * scale, y);
      pen.lineTo(this.ends[number + 1] * scale, y);
    });
    pen.lineTo(this.ends.at(-1) * scale, bottom);
    pen.fillStyle = color("accent");
    pen.globalAlpha = 0.25;
    pen.fill();
    pen.globalAlpha = 1;
    pen.strokeStyle = color("accent");
    pen.lineWidth = 1;
    pen.stroke();
    this.most = most;
  }

  drawWords(pen) {
    pen.fillStyle = color("text");
    pen.font = "12px sans-serif";
    const whole = this.isTimed ? seconds(this.ends.at(-1)) : "in order: not measured";
    pen.fillText(`launches, ${whole}`, 0, HEAD - 4);
    const most = `memory of results and temporaries, at most ${bytes(this.most)}`;
    pen.fillText(most, 0, 2 * HEAD + BAR - 2);
  }
}
