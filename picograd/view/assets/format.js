// Numbers and pieces of pages for people.

const SIZES = ["B", "KiB", "MiB", "GiB", "TiB"];
const TIMES = [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]];

/** Write a number of bytes: 1536 -> "1.5 KiB". */
export function bytes(count) {
  let unit = 0;
  while (count >= 1024 && unit < SIZES.length - 1) {
    count /= 1024;
    unit += 1;
  }
  return `${unit ? count.toFixed(1) : count} ${SIZES[unit]}`;
}

/** Write seconds: 0.00125 -> "1.25 ms". */
export function seconds(time) {
  if (time === null || time === undefined) {
    return "not measured";
  }
  const [unit, name] = TIMES.find(([each]) => time >= each) ?? TIMES.at(-1);
  return `${(time / unit).toFixed(2)} ${name}`;
}

/** Write a rate in giga-units: rate(2e9, 1, "FLOP/s") -> "2.0 GFLOP/s". */
export function rate(amount, time, unit) {
  return time ? `${(amount / time / 1e9).toFixed(1)} G${unit}` : "";
}

/** Write an array: "float32[2, 3]". */
export function array(slot) {
  return `${slot.dtype}[${slot.shape.join(", ")}]`;
}

/** Make an element; texts among the children are text, never markup. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) {
      made.addEventListener(name.slice(2), value);
    } else {
      made.setAttribute(name, value);
    }
  }
  made.append(...children.flat());
  return made;
}

/** Make a table of rows, each a list of cells; numbers stand to the right. */
export function table(heads, rows) {
  const cell = (value) => {
    const isNumber = typeof value === "string" && /^[-+]?[\d.]+( \S+)?$/.test(value);
    return element("td", isNumber ? { class: "number" } : {}, value);
  };
  const head = element("tr", {}, heads.map((text) => element("th", {}, text)));
  const body = rows.map((row) => {
    const cells = row.cells ?? row;
    return element("tr", { class: row.kind ?? "" }, cells.map(cell));
  });
  return element("table", {}, heads.length ? head : [], body);
}

/** Read a colour of the present theme. */
export function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
