// The page: what is chosen, and who draws it.

import { drawComparison, fresh } from "./compare.js";
import { bytes, element, table } from "./format.js";
import { Graph } from "./graph.js";
import { countArrays } from "./model.js";
import { Panel } from "./panel.js";
import { drawRoofline } from "./roofline.js";
import { Search } from "./search.js";
import { Timeline } from "./timeline.js";

const get = (id) => document.getElementById(id);
const FEW = 24; // inputs and outputs that are drawn unless the user says otherwise
const state = { run: 0, plan: Infinity, other: -1, selected: "", view: "timeline" };
const runs = new Map(); // by number, as promises
const stages = new Map(); // by "run/plan/kernel", as promises
let titles = [];
let graph = null;
let timeline = null;

async function fetchJson(path) {
  const answer = await fetch(`api/${path}`);
  if (!answer.ok) {
    throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  }
  return answer.json();
}

/** Remember the answer of a question, but not a failure. */
function once(known, key, path) {
  if (!known.has(key)) {
    const asked = fetchJson(path);
    known.set(key, asked);
    asked.catch(() => known.delete(key));
  }
  return known.get(key);
}

const loadRun = (number) => once(runs, number, `runs/${number}`);
const presentRun = () => loadRun(state.run);
const presentPlan = async () => (await presentRun()).plans[state.plan];

function loadStages(kernel) {
  const key = `${state.run}/${state.plan}/${kernel}`;
  return once(stages, key, `runs/${key}`);
}

const panel = new Panel(get("stages"), get("content"), loadStages, (id) => select(id));
const search = new Search(
  get("search"), get("found"), (ids) => graph?.mark("found", ids), (id) => select(id),
);

/** Select a step "s3", an array "p3", an edge "e3", or nothing. */
async function select(id) {
  state.selected = id;
  const plan = await presentPlan();
  graph.select(id);
  timeline?.draw(id);
  remember();
  await panel.show(plan, id);
}

async function showPlan() {
  const run = await presentRun();
  state.plan = state.plan < run.plans.length ? state.plan : largest(run);
  const plan = run.plans[state.plan];
  fill(get("plan"), run.plans.map((each) => each.title), state.plan);
  get("arrays").checked = countArrays(plan) <= FEW;
  drawGraph(plan);
  get("facts").textContent = `${plan.steps.length} launches, ${bytes(plan.peak)}`;
  search.show(plan);
  await showView();
  await select("");
  document.body.dataset.shown = `${state.run}/${state.plan}`;
}

/** Number the plan of most launches, which is shown unless another is asked for. */
function largest({ plans }) {
  const counts = plans.map((plan) => plan.steps.length);
  return counts.indexOf(Math.max(...counts));
}

function drawGraph(plan) {
  graph?.destroy();
  graph = new Graph(get("graph"), plan, get("arrays").checked, select);
  document.body.dataset.layout = Math.round(graph.layoutTime);
  document.body.dataset.drawn = Math.round(graph.drawTime);
}

async function changeArrays() {
  drawGraph(await presentPlan());
  await showView();
  graph.select(state.selected);
}

/** Find the plan of the other run that the present one is compared with. */
async function otherPlan() {
  if (state.other < 0) {
    return null;
  }
  const { plans } = await loadRun(state.other);
  return plans[Math.min(state.plan, plans.length - 1)];
}

async function showView() {
  const [plan, other, place] = [await presentPlan(), await otherPlan(), get("view")];
  timeline = null;
  for (const button of get("views").children) {
    button.setAttribute("aria-selected", button.dataset.view === state.view);
  }
  graph.mark("fresh", other ? fresh(other, plan) : []);
  if (state.view === "timeline") {
    timeline = new Timeline(place, plan, select);
    timeline.draw(state.selected);
  } else if (state.view === "roofline") {
    drawRoofline(place, plan, select);
  } else if (state.view === "compare") {
    drawComparison(place, other, plan, titles[state.other], (name) => search.look(name));
  } else {
    drawReasons(place, plan);
  }
}

function drawReasons(place, plan) {
  const linked = plan.slots.flatMap((slot, number) => slot.reasons.map((text) => [number, text]));
  const rows = linked.map(([slot, text]) => {
    const name = plan.slots[slot].name || `p${slot}`;
    return [element("a", { onclick: () => select(`p${slot}`) }, name), text];
  });
  const seen = new Set(linked.map(([, text]) => text));
  rows.push(...plan.reasons.filter((text) => !seen.has(text)).map((text) => ["", text]));
  const none = element("p", { class: "soft" }, "Nothing was kept apart.");
  place.replaceChildren(rows.length ? table(["array", "why it is in memory"], rows) : none);
}

function fill(list, names, chosen, first = []) {
  const options = names.map((name, number) => element("option", { value: number }, name));
  list.replaceChildren(...first, ...options);
  list.value = String(chosen);
}

function remember() {
  const { run, plan, selected } = state;
  const words = new URLSearchParams({ run, plan, ...(selected ? { selected } : {}) });
  history.replaceState(null, "", `#${words}`);
}

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem("theme", name);
  } catch {
    // a browser may keep nothing for pages
  }
  graph?.draw();
  if (graph) {
    showView();
  }
}

function startTheme() {
  let kept = null;
  try {
    kept = localStorage.getItem("theme");
  } catch {
    // likewise
  }
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  setTheme(kept ?? (isDark ? "dark" : "light"));
}

const changeTheme = () => {
  setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
};

async function step(by) {
  const plan = await presentPlan();
  const isStep = state.selected[0] === "s";
  const next = isStep ? Number(state.selected.slice(1)) + by : by > 0 ? 0 : plan.steps.length - 1;
  if (next >= 0 && next < plan.steps.length) {
    await select(`s${next}`);
  }
}

function show(view) {
  state.view = view;
  return showView();
}

const VIEWS = ["timeline", "roofline", "reasons", "compare"];
const KEYS = {
  "/": () => get("search").focus(),
  "?": () => get("keys").showModal(),
  "[": () => panel.move(-1),
  "]": () => panel.move(1),
  Escape: () => select(""),
  a: () => get("arrays").click(),
  f: () => graph.fit(),
  j: () => step(1),
  k: () => step(-1),
  t: changeTheme,
};
VIEWS.forEach((view, number) => (KEYS[number + 1] = () => show(view)));

function onKey(event) {
  const isTyping = event.target.matches("select, input:not([type=checkbox])");
  const isOther = event.ctrlKey || event.metaKey || event.altKey;
  const action = isTyping || isOther || get("keys").open ? null : KEYS[event.key];
  if (action) {
    event.preventDefault();
    action();
  }
}

function listen() {
  document.addEventListener("keydown", onKey);
  get("run").addEventListener("change", (event) => {
    state.run = Number(event.target.value);
    state.plan = Infinity;
    showPlan();
  });
  get("plan").addEventListener("change", (event) => {
    state.plan = Number(event.target.value);
    showPlan();
  });
  get("other").addEventListener("change", (event) => {
    state.other = Number(event.target.value);
    show("compare");
  });
  get("views").addEventListener("click", ({ target }) => {
    if (target.dataset.view) {
      show(target.dataset.view);
    }
  });
  get("arrays").addEventListener("change", changeArrays);
  get("fit").addEventListener("click", () => graph.fit());
  get("theme").addEventListener("click", changeTheme);
  get("help").addEventListener("click", () => get("keys").showModal());
  window.addEventListener("resize", showView);
  window.addEventListener("hashchange", () => location.reload()); // another run's address
}

async function start() {
  titles = (await fetchJson("runs")).map((title, number) => `${number + 1}: ${title}`);
  const words = new URLSearchParams(location.hash.slice(1));
  const asked = Number(words.get("run") ?? titles.length - 1);
  state.run = Math.min(Math.max(asked, 0), titles.length - 1);
  state.plan = Number(words.get("plan") ?? Infinity);
  fill(get("run"), titles, state.run);
  fill(get("other"), titles, -1, [element("option", { value: -1 }, "nothing")]);
  listen();
  await showPlan();
  const selected = words.get("selected");
  if (selected) {
    await select(selected);
  }
}

// Where things are on the canvas, for tests that click on them.
window.picogradView = { positionOf: (id) => graph.positionOf(id) };
startTheme();
start().catch((error) => {
  get("content").replaceChildren(element("p", { class: "reason" }, String(error)));
});
