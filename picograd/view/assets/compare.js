// What changed between two plans, kernel by kernel.

import { bytes, element, seconds, table } from "./format.js";

const CLOSE = 0.05; // share of a time that noise may be

/** Add up the launches of each kernel name. */
export function byName(plan) {
  const found = new Map();
  for (const step of plan.steps) {
    const row = found.get(step.title) ?? { count: 0, seconds: 0, bytes: 0, isTimed: false };
    row.count += 1;
    row.seconds += step.seconds ?? 0;
    row.isTimed ||= step.seconds !== null;
    row.bytes += step.kernels.reduce((sum, each) => sum + plan.kernels[each].bytes, 0);
    found.set(step.title, row);
  }
  return found;
}

/** List names with their launches in both plans: those that differ first. */
export function differences(before, after) {
  const [old, now] = [byName(before), byName(after)];
  const names = [...new Set([...now.keys(), ...old.keys()])];
  const rows = names.map((name) => ({ name, old: old.get(name), now: now.get(name) }));
  const weight = ({ old: a, now: b }) => (a && b ? (a.count === b.count ? 2 : 1) : 0);
  return rows.sort((a, b) => weight(a) - weight(b));
}

/** List the steps of a plan whose kernel the other has not. */
export function fresh(before, after) {
  const old = byName(before);
  return after.steps.flatMap((step, number) => (old.has(step.title) ? [] : [`s${number}`]));
}

export function drawComparison(place, before, after, title, onFind) {
  if (!before) {
    const text = "Choose a run to compare with; a second picograd.view(...) adds one.";
    place.replaceChildren(element("p", { class: "soft" }, text));
    return;
  }
  const whole = (plan) => plan.steps.reduce((sum, step) => sum + (step.seconds ?? 0), 0) || null;
  const sums = [
    ["launches", String(before.steps.length), String(after.steps.length)],
    ["memory", bytes(before.peak), bytes(after.peak)],
    ["time of launches", seconds(whole(before)), seconds(whole(after))],
  ];
  const rows = differences(before, after).map((row) => describe(row, onFind));
  const heads = ["kernel", "before", "after", "time before", "after", "traffic before", "after"];
  place.replaceChildren(
    element("p", {}, `before: ${title}`), table(["", "before", "after"], sums), table(heads, rows),
  );
}

function describe({ name, old, now }, onFind) {
  const time = (row) => (row?.isTimed ? seconds(row.seconds) : "");
  const count = (row) => String(row?.count ?? 0);
  const size = (row) => (row ? bytes(row.bytes) : "");
  const link = now ? element("a", { onclick: () => onFind(name) }, name) : name;
  const cells = [link, count(old), count(now), time(old), time(now), size(old), size(now)];
  return { kind: change(old, now), cells };
}

function change(old, now) {
  if (!old || !now) {
    return old ? "gone" : "fresh";
  }
  if (!old.isTimed || !now.isTimed) {
    return "";
  }
  const share = now.seconds / old.seconds - 1;
  return Math.abs(share) < CLOSE ? "" : share < 0 ? "better" : "worse";
}
