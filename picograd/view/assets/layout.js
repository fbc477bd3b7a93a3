// Layered layout of an acyclic graph, in time linear in nodes and edges but for sorting layers.
//
// A node's layer is its longest path from a source. Layers are ordered by the mean place of
// neighbours, a few times down and up; then every node is put below the mean of what it reads, as
// near as the width of its neighbours allows. Long edges get no nodes on their way: in the graph of
// a training step most of the layers would be made of them.

const SWEEPS = 4;

/**
 * Place nodes 0..count-1 with edges [from, to].
 *
 * Returns the centres {x, y} of nodes `wide` x `high`, with gaps between them.
 */
export function layered(count, edges, wide, high, gap = 30) {
  const graph = neighbours(count, edges);
  const layers = makeLayers(count, graph);
  const place = new Float64Array(count);
  for (const layer of layers) {
    layer.forEach((node, number) => (place[node] = number));
  }
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const isDown = sweep % 2 === 0;
    const ordered = isDown ? layers : [...layers].reverse();
    for (const layer of ordered) {
      sortLayer(layer, place, isDown ? graph.before : graph.after);
    }
  }
  const x = spread(layers, graph, wide + gap);
  const y = new Float64Array(count);
  layers.forEach((layer, depth) => layer.forEach((node) => (y[node] = depth * (high + 1.4 * gap))));
  return { x, y, layers: layers.length };
}

/** List who each node reads, and who reads it. */
function neighbours(count, edges) {
  const before = Array.from({ length: count }, () => []);
  const after = Array.from({ length: count }, () => []);
  for (const [from, to] of edges) {
    before[to].push(from);
    after[from].push(to);
  }
  return { before, after };
}

/** Put nodes into layers; one that reads nothing stands just above its first reader. */
function makeLayers(count, { before, after }) {
  const depth = new Int32Array(count);
  const missing = before.map((each) => each.length);
  const order = [];
  missing.forEach((each, node) => each === 0 && order.push(node));
  for (let next = 0; next < order.length; next += 1) {
    const node = order[next];
    for (const reader of after[node]) {
      depth[reader] = Math.max(depth[reader], depth[node] + 1);
      missing[reader] -= 1;
      if (missing[reader] === 0) {
        order.push(reader);
      }
    }
  }
  for (const node of order) {
    if (!before[node].length && after[node].length) {
      const nearest = after[node].reduce((least, reader) => Math.min(least, depth[reader]), Infinity);
      depth[node] = nearest - 1;
    }
  }
  const layers = [];
  for (const node of order) {
    (layers[depth[node]] ??= []).push(node);
  }
  return Array.from(layers, (layer) => layer ?? []);
}

/** Order a layer by the mean place of neighbours; one that has none keeps its place. */
function sortLayer(layer, place, around) {
  const wanted = new Map();
  for (const node of layer) {
    wanted.set(node, around[node].length ? mean(around[node], place) : place[node]);
  }
  layer.sort((a, b) => wanted.get(a) - wanted.get(b) || a - b);
  layer.forEach((node, number) => (place[node] = number));
}

/** Give nodes their x: the mean of what they read, at least `step` apart, centred on it. */
function spread(layers, graph, step) {
  const x = new Float64Array(graph.before.length);
  for (const layer of layers) {
    let last = -Infinity;
    let shift = 0;
    for (const node of layer) {
      const read = graph.before[node];
      const wanted = read.length ? mean(read, x) : last + step;
      x[node] = Number.isFinite(wanted) ? Math.max(wanted, last + step) : 0;
      shift += read.length ? wanted - x[node] : 0;
      last = x[node];
    }
    for (const node of layer) {
      x[node] += shift / layer.length;
    }
  }
  for (const layer of [...layers].reverse()) {
    placeLeaves(layer, graph, x, step);
  }
  return x;
}

/** Put nodes that read nothing above their readers, where there is room in their layer. */
function placeLeaves(layer, graph, x, step) {
  const taken = layer.filter((node) => graph.before[node].length).map((node) => x[node]);
  const free = layer.filter((node) => !graph.before[node].length && graph.after[node].length);
  const wanted = new Map(free.map((node) => [node, mean(graph.after[node], x)]));
  free.sort((a, b) => wanted.get(a) - wanted.get(b) || a - b);
  let last = taken.length ? taken.reduce((most, each) => Math.max(most, each)) : -Infinity;
  for (const node of free) {
    x[node] = Math.max(wanted.get(node), last + step);
    last = x[node];
  }
}

function mean(nodes, values) {
  let sum = 0;
  for (const node of nodes) {
    sum += values[node];
  }
  return sum / nodes.length;
}
