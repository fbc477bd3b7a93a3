// Search: kernels by name, kind, or the arrays they touch.

import { array, element } from "./format.js";

const SHOWN = 60;

/** List the steps in which every word of a query occurs. */
export function matches(plan, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) {
    return [];
  }
  return plan.steps.flatMap((step, number) => {
    const touched = [...step.reads, ...step.writes].map((slot) => plan.slots[slot]);
    const arrays = touched.map((slot) => `${slot.name} ${array(slot)}`).join(" ");
    const text = `${number} ${step.title} ${step.kind} ${arrays}`.toLowerCase();
    return words.every((word) => text.includes(word)) ? [number] : [];
  });
}

export class Search {
  constructor(input, list, onFound, onSelect) {
    Object.assign(this, { input, list, onFound, onSelect, found: [], current: -1 });
    input.addEventListener("input", () => this.update());
    input.addEventListener("keydown", (event) => this.key(event));
    input.addEventListener("blur", () => setTimeout(() => (list.hidden = true), 150));
  }

  show(plan) {
    this.plan = plan;
    this.update();
    this.list.hidden = true;
  }

  look(text) {
    this.input.value = text;
    this.update();
    this.go(0);
    this.list.hidden = true;
  }

  update() {
    this.found = matches(this.plan, this.input.value);
    this.current = -1;
    const items = this.found.slice(0, SHOWN).map((number, place) => {
      const text = `${number} ${this.plan.steps[number].title}`;
      return element("li", { onmousedown: () => this.go(place) }, text);
    });
    if (this.found.length > SHOWN) {
      items.push(element("li", { class: "soft" }, `${this.found.length - SHOWN} more`));
    }
    this.list.replaceChildren(...items);
    this.list.hidden = !this.found.length;
    this.onFound(this.found.map((number) => `s${number}`));
  }

  go(place) {
    if (!this.found.length) {
      return;
    }
    this.current = place % this.found.length;
    [...this.list.children].forEach((item, each) => {
      item.classList.toggle("current", each === this.current);
    });
    this.onSelect(`s${this.found[this.current]}`);
  }

  key(event) {
    if (event.key === "Enter") {
      this.go(this.current + 1);
    } else if (event.key === "Escape") {
      this.input.value = "";
      this.update();
      this.input.blur();
    }
  }
}
