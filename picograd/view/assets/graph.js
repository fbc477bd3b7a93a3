// The graph of a plan on a canvas, which is moved and zoomed; what is out of sight is not drawn.

import { color, element } from "./format.js";
import { HIGH, WIDE, makeGraph } from "./model.js";

const FIRST = { least: 0.45, most: 1.2 }; // zoom of a first look: below it nothing can be read
const LIMITS = { least: 0.002, most: 4 };
const READABLE = 0.35; // zoom from which there are words
const LABELLED = 0.7; // and from which edges have some
const NEAR = 6; // pixels beside an edge that still hit it
const STILL = 4; // pixels that a click may move

/** Draws a plan; `onSelect` is told of the step, array or edge that the user picks. */
export class Graph {
  constructor(place, plan, withArrays, onSelect) {
    const started = performance.now();
    Object.assign(this, { place, onSelect, selected: "", marks: new Map() });
    Object.assign(this, makeGraph(plan, withArrays));
    this.byId = new Map([...this.nodes, ...this.edges].map((each) => [each.id, each]));
    this.layoutTime = performance.now() - started;
    this.canvas = element("canvas", { "aria-label": "kernels and the arrays between them" });
    place.replaceChildren(this.canvas);
    this.listen();
    this.look();
    this.draw();
    this.drawTime = performance.now() - started;
  }

  listen() {
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(this.place);
    this.canvas.addEventListener("pointerdown", (event) => this.grab(event));
    this.canvas.addEventListener("pointermove", (event) => this.drag(event));
    this.canvas.addEventListener("pointerup", (event) => this.drop(event));
    const zoom = (event) => this.zoomAt(event);
    this.canvas.addEventListener("wheel", zoom, { passive: false });
  }

  destroy() {
    this.watcher.disconnect();
    this.canvas.remove();
  }

  /** Find the box around all nodes. */
  box() {
    const box = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
    for (const { x, y } of this.nodes) {
      box.left = Math.min(box.left, x - WIDE / 2);
      box.right = Math.max(box.right, x + WIDE / 2);
      box.top = Math.min(box.top, y - HIGH / 2);
      box.bottom = Math.max(box.bottom, y + HIGH / 2);
    }
    return box;
  }

  fit() {
    const { left, right, top, bottom } = this.box();
    const { clientWidth, clientHeight } = this.place;
    const room = [(clientWidth - 40) / (right - left), (clientHeight - 40) / (bottom - top)];
    this.zoom = Math.min(...room, LIMITS.most);
    this.x = (left + right) / 2;
    this.y = (top + bottom) / 2;
    this.draw();
  }

  /** Show all, or as much from the start as can be read. */
  look() {
    this.fit();
    if (this.zoom < FIRST.least && this.nodes.length) {
      const { x, y } = this.nodes[0];
      this.zoom = FIRST.least;
      const below = (this.place.clientHeight / 2 - HIGH) / this.zoom;
      Object.assign(this, { x, y: y + below });
    }
    this.zoom = Math.min(this.zoom, FIRST.most);
  }

  /** Find where something is on the canvas, in pixels. */
  positionOf(id) {
    const found = this.byId.get(id);
    if (!found) {
      return null;
    }
    return this.toScreen("x" in found ? found : middle(found, ...this.ends(found)));
  }

  ends({ from, to }) {
    return [this.nodes[from], this.nodes[to]];
  }

  toScreen({ x, y }) {
    const { clientWidth, clientHeight } = this.place;
    const { zoom } = this;
    return { x: (x - this.x) * zoom + clientWidth / 2, y: (y - this.y) * zoom + clientHeight / 2 };
  }

  toGraph({ x, y }) {
    const { clientWidth, clientHeight } = this.place;
    const { zoom } = this;
    return { x: (x - clientWidth / 2) / zoom + this.x, y: (y - clientHeight / 2) / zoom + this.y };
  }

  /** Find what is at a place of the canvas: a node, else an edge near by, else nothing. */
  hit(place) {
    const at = this.toGraph(place);
    const isOver = ({ x, y }) => Math.abs(at.x - x) < WIDE / 2 && Math.abs(at.y - y) < HIGH / 2;
    const node = this.nodes.find(isOver);
    if (node) {
      return node.id;
    }
    let [nearest, id] = [NEAR / this.zoom, ""];
    for (const edge of this.edges) {
      const [a, b] = this.ends(edge);
      const half = middle(edge, a, b);
      const far = Math.min(distance(at, a, half), distance(at, half, b));
      if (far < nearest) {
        [nearest, id] = [far, edge.id];
      }
    }
    return id;
  }

  grab(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.held = { x: event.offsetX, y: event.offsetY, moved: 0 };
  }

  drag(event) {
    const { held } = this;
    if (!held) {
      this.canvas.classList.toggle("over", this.hit({ x: event.offsetX, y: event.offsetY }) !== "");
      return;
    }
    const [right, down] = [event.offsetX - held.x, event.offsetY - held.y];
    held.moved += Math.abs(right) + Math.abs(down);
    Object.assign(held, { x: event.offsetX, y: event.offsetY });
    this.x -= right / this.zoom;
    this.y -= down / this.zoom;
    this.drawSoon();
  }

  drop(event) {
    if (this.held && this.held.moved < STILL) {
      this.onSelect(this.hit({ x: event.offsetX, y: event.offsetY }));
    }
    this.held = null;
  }

  zoomAt(event) {
    event.preventDefault();
    const place = { x: event.offsetX, y: event.offsetY };
    const before = this.toGraph(place);
    const wanted = this.zoom * Math.exp(-event.deltaY / 500);
    this.zoom = Math.min(Math.max(wanted, LIMITS.least), LIMITS.most);
    const after = this.toGraph(place);
    this.x += before.x - after.x;
    this.y += before.y - after.y;
    this.drawSoon();
  }

  /** Mark what is selected, and bring it into view. */
  select(id) {
    this.selected = id;
    const at = this.positionOf(id);
    const { clientWidth, clientHeight } = this.place;
    const isSeen = at && at.x > 0 && at.y > 0 && at.x < clientWidth && at.y < clientHeight;
    if (at && !isSeen) {
      Object.assign(this, this.toGraph(at));
    }
    this.draw();
  }

  /** Mark some nodes in a colour of the theme: matches of a search, what is new here. */
  mark(name, ids) {
    this.marks.set(name, new Set(ids));
    this.drawSoon();
  }

  drawSoon() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    const { clientWidth, clientHeight } = this.place;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = clientWidth * ratio;
    this.canvas.height = clientHeight * ratio;
    this.canvas.style.width = `${clientWidth}px`;
    this.canvas.style.height = `${clientHeight}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.translate(clientWidth / 2, clientHeight / 2);
    pen.scale(this.zoom, this.zoom);
    pen.translate(-this.x, -this.y);
    const [start, end] = [{ x: 0, y: 0 }, { x: clientWidth, y: clientHeight }];
    this.seen = [this.toGraph(start), this.toGraph(end)];
    this.drawEdges(pen);
    this.drawNodes(pen);
  }

  /** Tell whether a box of the graph reaches into the canvas. */
  isSeen(left, top, right, bottom) {
    const [start, end] = this.seen;
    return right > start.x && left < end.x && bottom > start.y && top < end.y;
  }

  drawEdges(pen) {
    const seen = this.edges.filter((edge) => {
      const [a, b] = this.ends(edge);
      return this.isSeen(Math.min(a.x, b.x), a.y, Math.max(a.x, b.x) + edge.bow, b.y);
    });
    const isReadable = this.zoom > READABLE;
    const draw = (edges, stroke, wide, dash) => {
      pen.beginPath();
      for (const edge of edges) {
        trace(pen, edge, ...this.ends(edge), isReadable);
      }
      pen.strokeStyle = stroke;
      pen.lineWidth = wide;
      pen.setLineDash(isReadable ? dash : []);
      pen.stroke();
    };
    const thin = Math.max(1.2, 0.5 / this.zoom);
    draw(seen.filter((edge) => !edge.isKept), color("soft"), thin, []);
    draw(seen.filter((edge) => edge.isKept), color("reason"), 1.5 * thin, [6, 4]);
    draw(seen.filter((edge) => edge.id === this.selected), color("accent"), 4, []);
    pen.setLineDash([]);
    if (this.zoom > LABELLED) {
      seen.forEach((edge) => this.drawLabel(pen, edge));
    }
  }

  drawLabel(pen, edge) {
    const { x, y } = middle(edge, ...this.ends(edge));
    pen.font = "10px sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    const wide = pen.measureText(edge.label).width + 6;
    pen.fillStyle = color("back");
    pen.fillRect(x - wide / 2, y - 7, wide, 14);
    pen.fillStyle = color(edge.isKept ? "reason" : "text");
    pen.fillText(edge.label, x, y);
  }

  drawNodes(pen) {
    const isReadable = this.zoom > READABLE;
    const borders = [["found", "reason"], ["fresh", "better"]];
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (const node of this.nodes) {
      const [left, top] = [node.x - WIDE / 2, node.y - HIGH / 2];
      if (!this.isSeen(left, top, left + WIDE, top + HIGH)) {
        continue;
      }
      pen.beginPath();
      pen.roundRect(left, top, WIDE, HIGH, node.isArray ? HIGH / 2 : 6);
      pen.fillStyle = node.color;
      pen.fill();
      const mark = borders.find(([name]) => this.marks.get(name)?.has(node.id));
      if (node.id === this.selected || mark) {
        pen.strokeStyle = color(node.id === this.selected ? "accent" : mark[1]);
        pen.lineWidth = Math.max(4, 1.5 / this.zoom);
        pen.stroke();
      }
      if (isReadable) {
        drawWords(pen, node);
      }
    }
  }
}

function drawWords(pen, { x, y, lines }) {
  pen.fillStyle = "#111418";
  pen.font = "12px sans-serif";
  pen.fillText(shorten(lines[0]), x, y - 8, WIDE - 12);
  pen.font = "10px sans-serif";
  pen.fillText(lines[1], x, y + 9, WIDE - 12);
}

function shorten(text) {
  return text.length > 36 ? `${text.slice(0, 35)}…` : text;
}

/** Draw an arrow from the bottom of a node to the top of another. */
function trace(pen, { bow }, a, b, withHead) {
  const [start, end] = [a.y + HIGH / 2, b.y - HIGH / 2];
  const bend = Math.min(Math.max((end - start) / 2, 10), 80);
  pen.moveTo(a.x, start);
  if (!withHead) {
    pen.lineTo(b.x, end);
    return;
  }
  pen.bezierCurveTo(a.x + bow, start + bend, b.x + bow, end - bend, b.x, end);
  pen.moveTo(b.x - 4, end - 7);
  pen.lineTo(b.x, end);
  pen.lineTo(b.x + 4, end - 7);
}

/** Find the middle of an edge, where its label is: those of one pair are below each other. */
function middle({ bow, lane }, a, b) {
  return { x: (a.x + b.x) / 2 + 0.75 * bow, y: (a.y + b.y) / 2 + 14 * lane };
}

/** Find how far a place is from the straight line between two nodes. */
function distance(at, a, b) {
  const [wide, high] = [b.x - a.x, b.y - a.y];
  const share = ((at.x - a.x) * wide + (at.y - a.y) * high) / (wide * wide + high * high || 1);
  const near = Math.min(Math.max(share, 0), 1);
  return Math.hypot(at.x - a.x - near * wide, at.y - a.y - near * high);
}
