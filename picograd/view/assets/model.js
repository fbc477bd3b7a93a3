// What the graph of a plan consists of: its steps, inputs and outputs, and the arrays between them.

import { array, bytes } from "./format.js";
import { layered } from "./layout.js";

const KINDS = {
  map: "#4dabf7", reduce: "#ffa94d", contract: "#b197fc", conv: "#f783ac", gather: "#63e6be",
  scatter: "#38d9a9", scan: "#a9e34b", sort: "#ffd43b", copy: "#ced4da", host: "#e599f7",
  loop: "#ff8787", input: "#adb5bd", output: "#868e96",
};
export const WIDE = 190;
export const HIGH = 40;

/** Find the colour of a kind of step: "reduce.row" is a reduction. */
export function kindColor(kind) {
  return KINDS[kind.split(".")[0]] ?? "#91a7ff";
}

/** Count the inputs and outputs of a plan that somebody reads or makes. */
export function countArrays(plan) {
  const ends = plan.edges.flatMap(([from, to]) => [from, to]);
  return new Set(ends.filter((id) => id[0] !== "s")).size;
}

/** Make the nodes and edges of a plan, placed; with arrays, its inputs and outputs too. */
export function makeGraph(plan, withArrays) {
  const nodes = plan.steps.map((step, number) => stepNode(step, number));
  const known = new Map(nodes.map((node, number) => [node.id, number]));
  const edges = [];
  plan.edges.forEach(([from, to, slot], number) => {
    if (!withArrays && (from[0] !== "s" || to[0] !== "s")) {
      return;
    }
    for (const id of [from, to]) {
      if (!known.has(id)) {
        known.set(id, nodes.length);
        nodes.push(arrayNode(id, plan.slots[slot]));
      }
    }
    const ends = { from: known.get(from), to: known.get(to) };
    edges.push({ id: `e${number}`, ...ends, ...edgeFacts(plan.slots[slot], from, to) });
  });
  const pairs = edges.map(({ from, to }) => [from, to]);
  const { x, y } = layered(nodes.length, pairs, WIDE, HIGH);
  nodes.forEach((node, number) => Object.assign(node, { x: x[number], y: y[number] }));
  bendEdges(nodes, edges);
  return { nodes, edges };
}

/** Lead edges around what lies between their nodes, and those of one pair beside each other. */
function bendEdges(nodes, edges) {
  const lanes = new Map();
  edges.forEach((edge, number) => {
    const [a, b] = [nodes[edge.from], nodes[edge.to]];
    const pair = `${edge.from} ${edge.to}`;
    edge.lane = lanes.get(pair) ?? 0;
    lanes.set(pair, edge.lane + 1);
    const isLong = b.y - a.y > 4 * HIGH && Math.abs(b.x - a.x) < WIDE;
    edge.bow = isLong ? WIDE + 18 * (number % 6) : 12 * edge.lane;
  });
}

function stepNode(step, number) {
  const lines = [`${number}  ${step.title}`, step.kind];
  return { id: `s${number}`, lines, color: kindColor(step.kind), isArray: false };
}

function arrayNode(id, slot) {
  const kind = id[0] === "p" ? "input" : "output";
  return { id, lines: [slot.name || kind, array(slot)], color: KINDS[kind], isArray: true };
}

/** Describe an edge; one is kept by a decision if nobody but kernels wanted the array. */
function edgeFacts(slot, from, to) {
  const isInside = slot.kind !== "output" && from[0] === "s" && to[0] === "s";
  const isKept = isInside && slot.reasons.length > 0;
  return { isKept, label: `${array(slot)}  ${bytes(slot.bytes)}` };
}
