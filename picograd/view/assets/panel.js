// The panel beside the graph: facts of what is selected, and the stages of a kernel as text.

import { array, bytes, element, rate, seconds, table } from "./format.js";

const FACTS = "facts";

export class Panel {
  /** `getStages(kernel)` gives a promise of a kernel's stages, `onSelect` follows links. */
  constructor(tabs, content, getStages, onSelect) {
    Object.assign(this, { tabs, content, getStages, onSelect });
    this.stage = FACTS; // the tab that stays open from kernel to kernel
    this.stages = [];
    this.asked = 0;
  }

  /** Show what is selected: a step, an array, an edge, or the plan. */
  async show(plan, id) {
    this.asked += 1;
    this.stages = [];
    this.tabs.replaceChildren();
    const number = Number(id.slice(1));
    if (id[0] === "s") {
      await this.showStep(plan, number);
    } else if (id[0] === "e") {
      const [from, to, slot] = plan.edges[number];
      this.content.replaceChildren(...this.describeArray(plan, slot, from, to));
    } else if (id) {
      this.content.replaceChildren(...this.describeArray(plan, number));
    } else {
      this.content.replaceChildren(...this.describePlan(plan));
    }
  }

  async showStep(plan, number) {
    const asked = this.asked;
    const step = plan.steps[number];
    const facts = this.describeStep(plan, number);
    this.content.replaceChildren(...facts);
    this.stages = [{ title: FACTS, parts: facts }];
    for (const kernel of step.kernels) {
      const found = await this.getStages(kernel);
      if (asked !== this.asked) {
        return; // the user went on
      }
      const name = step.kernels.length > 1 ? `${plan.kernels[kernel].name}: ` : "";
      this.stages.push(...found.map((each) => ({ ...each, title: name + each.title })));
    }
    const code = this.stages.find((each) => each.title.includes("Machine code"));
    if (code) {
      const [head] = code.text.split("\n");
      facts.push(element("p", { class: "soft", id: "resources" }, head.replace(/^[#/]+ /, "")));
    }
    this.drawTabs();
    this.open(this.stage);
  }

  drawTabs() {
    const button = (stage) => {
      const onclick = () => this.open(stage.title);
      return element("button", { role: "tab", onclick }, short(stage.title));
    };
    this.tabs.replaceChildren(...this.stages.map(button));
  }

  /** Open a stage by its title; the facts where there is none of it. */
  open(title) {
    const wanted = this.stages.findIndex((each) => short(each.title) === short(title));
    const number = Math.max(wanted, 0);
    const stage = this.stages[number];
    if (!stage) {
      return;
    }
    this.stage = stage.title;
    [...this.tabs.children].forEach((button, each) => {
      button.setAttribute("aria-selected", each === number);
    });
    const path = element("p", { class: "path" }, `${stage.title}  ${stage.path ?? ""}`);
    this.content.replaceChildren(...(stage.parts ?? [path, element("pre", {}, stage.text)]));
    this.content.scrollTop = 0;
  }

  /** Open the next stage, or the one before. */
  move(by) {
    const now = this.stages.findIndex((each) => each.title === this.stage);
    const next = this.stages[now + by];
    if (next) {
      this.open(next.title);
    }
  }

  describePlan(plan) {
    const rows = [
      ["launches", String(plan.steps.length)],
      ["kernels", String(plan.kernels.length)],
      ["made for", plan.target],
      ["memory it allocates", bytes(plan.peak)],
      ["ran", plan.runs ? `${plan.runs} times` : "not yet"],
    ];
    if (plan.origin) {
      rows.push(["asked for at", plan.origin]);
    }
    const hint = "Click a kernel for its stages, an edge for its array and why it is in memory.";
    return [element("h2", {}, plan.title), table([], rows), element("p", { class: "soft" }, hint)];
  }

  describeStep(plan, number) {
    const step = plan.steps[number];
    const rows = [["launch", `${number} on ${step.device}`], ["kind", step.kind]];
    rows.push(["time", seconds(step.seconds)]);
    for (const each of step.kernels) {
      const kernel = plan.kernels[each];
      const time = step.kernels.length === 1 ? step.seconds : null;
      const work = `${kernel.flops} ${rate(kernel.flops, time, "FLOP/s")}`;
      rows.push(["operations", work.trim()]);
      rows.push(["memory traffic", `${bytes(kernel.bytes)} ${rate(kernel.bytes, time, "B/s")}`]);
    }
    const lists = [["reads", step.reads], ["writes", step.writes]].flatMap(([title, slots]) => [
      element("h2", {}, title), table([], slots.map((slot) => this.arrayRow(plan, slot))),
    ]);
    return [element("h2", {}, step.title), table([], rows), ...lists];
  }

  arrayRow(plan, slot) {
    const found = plan.slots[slot];
    const onclick = () => this.onSelect(`p${slot}`);
    const link = element("a", { onclick }, found.name || `p${slot}`);
    return [link, found.kind, array(found), bytes(found.bytes)];
  }

  describeArray(plan, slot, from = "", to = "") {
    const found = plan.slots[slot];
    const rows = [["array", array(found)], ["kind", found.kind], ["size", bytes(found.bytes)]];
    if (found.offset >= 0) {
      rows.push(["in the arena at", String(found.offset)]);
    }
    const touched = plan.steps.flatMap((step, number) => {
      const words = [];
      if (step.writes.includes(slot)) words.push("written by");
      if (step.reads.includes(slot)) words.push("read by");
      const onclick = () => this.onSelect(`s${number}`);
      const link = element("a", { onclick }, `${number} ${step.title}`);
      return words.length ? [[words.join(", "), link]] : [];
    });
    const head = found.name || `p${slot}`;
    const ends = from ? element("p", { class: "soft" }, `${from} -> ${to}`) : [];
    const why = found.reasons.map((text) => element("p", { class: "reason" }, text));
    const none = found.kind === "input" ? "It was in memory before." : "No decision is recorded.";
    const title = element("h2", {}, "why it is in memory");
    const because = why.length ? why : [element("p", { class: "soft" }, none)];
    return [element("h2", {}, head), ends, table([], [...rows, ...touched]), title, ...because].flat();
  }
}

/** Leave out what a source is made for: "Source: CUDA C for sm_90a" -> "Source". */
function short(title) {
  return title.replace(/Source: .*/, "Source");
}
