// Filtering, sorting and comparing two rows. Without this script, every page still shows all data.
"use strict";

const entries = new Map(comparisons.entries.map((entry) => [entry.id, entry]));

function explainPair(one, two) {
  if (one === two) return "Choose two different systems.";
  const apart = "These rows are from different plots, so they cannot be compared.";
  const names = (a, b) => `${entries.get(a).system} and ${entries.get(b).system}`;
  const [found, turned] = [`${one} ${two}`, `${two} ${one}`].map((key) => comparisons.pairs[key]);
  if (found) return `${names(one, two)}: ${found}`;
  return turned ? `${names(two, one)}: ${turned}` : apart; // the better one comes first
}

// Sorting the tables of numbers.

function valueOf(row, column, kind) {
  const value = row.cells[column].dataset.value;
  if (kind === "text") return value || row.cells[column].textContent;
  return value === "" ? null : Number(value);
}

function compareRows(one, two, column, kind, sign) {
  const [a, b] = [valueOf(one, column, kind), valueOf(two, column, kind)];
  if (a === null || b === null) return (a === null) - (b === null); // missing values come last
  return sign * (kind === "text" ? a.localeCompare(b) : a - b);
}

// Group headings are shown only if the table is sorted by place.
function showGroups(table) {
  const byRank = table.dataset.order === "rank";
  for (const head of table.querySelectorAll(".group-head")) {
    const rows = table.querySelectorAll(`.row[data-group="${head.dataset.group}"]:not([hidden])`);
    head.hidden = !byRank || rows.length === 0;
  }
}

function sortBy(table, heading) {
  const kind = heading.dataset.sort;
  const column = heading.cellIndex;
  const usual = kind === "number" ? "descending" : "ascending";
  const other = usual === "ascending" ? "descending" : "ascending";
  const direction = heading.getAttribute("aria-sort") === usual && kind !== "rank" ? other : usual;
  for (const one of table.tHead.rows[0].cells) one.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", direction);
  table.dataset.order = kind;
  const sign = direction === "ascending" ? 1 : -1;
  const rows = [...table.querySelectorAll(".row")];
  rows.sort((one, two) => compareRows(one, two, column, kind, sign));
  const body = table.tBodies[0];
  const heads = new Map([...table.querySelectorAll(".group-head")].map((h) => [h.dataset.group, h]));
  for (const row of rows) {
    const head = heads.get(row.dataset.group);
    if (head) {
      body.append(head);
      heads.delete(row.dataset.group);
    }
    body.append(row);
  }
  showGroups(table);
}

function makeSortable(table) {
  table.dataset.order = "rank";
  for (const heading of table.querySelectorAll("th[data-sort]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(table, heading));
    heading.append(button);
    if (heading.dataset.sort === "rank") heading.setAttribute("aria-sort", "ascending");
  }
}

// Filtering plots and tables.

function filterRows(form, tables) {
  const { find, kind, tier, flagged } = form.elements;
  const text = find.value.trim().toLowerCase();
  let [shown, all] = [0, 0];
  for (const row of document.querySelectorAll("[data-name]")) {
    row.hidden =
      !row.dataset.name.includes(text) ||
      (kind.value !== "" && row.dataset.kind !== kind.value) ||
      (tier.value !== "" && row.dataset.tier !== tier.value) ||
      (flagged.checked && row.dataset.flagged !== "1");
    if (row.tagName === "LI") {
      shown += row.hidden ? 0 : 1;
      all += 1;
    }
  }
  for (const tie of document.querySelectorAll(".tie")) {
    tie.hidden = tie.querySelector("[data-name]:not([hidden])") === null;
  }
  tables.forEach(showGroups);
  form.querySelector("output").textContent = shown === all ? "" : `${shown} of ${all} results`;
}

// Comparing.

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function scoreTable(chosen) {
  const table = element("table", "");
  const head = table.createTHead().insertRow();
  head.append(element("th", "Score", { scope: "col" }));
  for (const entry of chosen) {
    head.append(element("th", entry.system, { scope: "col", class: "num" }));
  }
  const body = table.createTBody();
  const labels = new Set(chosen.flatMap((entry) => entry.scores.map(([label]) => label)));
  for (const label of labels) {
    const row = body.insertRow();
    row.append(element("th", label, { scope: "row" }));
    for (const entry of chosen) {
      const [, text, span] = entry.scores.find((score) => score[0] === label) || ["", "–", ""];
      const cell = element("td", text, { class: "num" });
      if (span) cell.append(element("small", span));
      row.append(cell);
    }
  }
  return table;
}

function shape(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function drawAxis(ticks) {
  const row = element("div", "", { class: "interval axis-row", "aria-hidden": "true" });
  const axis = shape("svg", { class: "interval-axis" });
  ticks.forEach((label, index) => {
    const anchor = index === 0 ? "start" : index === ticks.length - 1 ? "end" : "middle";
    const x = `${(100 * index) / (ticks.length - 1)}%`;
    const text = shape("text", { x, y: 13, "text-anchor": anchor });
    text.textContent = label;
    axis.append(text);
  });
  const cell = element("span", "", { class: "plot-cell" });
  cell.append(axis);
  row.append(element("span", "", { class: "name" }), cell, element("span", "", { class: "value" }));
  return row;
}

function drawMark(tier, at) {
  if (!["self-reported", "re-judged"].includes(tier)) {
    return shape("circle", { class: "mark", cx: `${at}%`, cy: 13, r: 5 });
  }
  const place = shape("svg", { x: `${at}%`, y: 13, overflow: "visible" });
  place.append(shape("path", { class: "mark", d: "M0-6 6 0 0 6-6 0Z" }));
  return place;
}

function drawRow(entry) {
  const [at, low, high, text, small] = entry.place;
  const plot = shape("svg", { class: "interval-plot", "aria-hidden": "true" });
  plot.append(
    shape("line", { class: "span", x1: `${low}%`, x2: `${high}%`, y1: 13, y2: 13 }),
    drawMark(entry.tier, at),
  );
  const row = element("li", "", { class: `interval ${entry.tier}` });
  const cell = element("span", "", { class: "plot-cell" });
  cell.append(plot);
  const value = element("span", text, { class: "value" });
  value.append(element("small", small));
  row.append(element("span", entry.system, { class: "name" }), cell, value);
  return row;
}

function showComparison(chosen, target) {
  const [one, two] = chosen.map((entry) => entry.id);
  const parts = explainPair(one, two).split(/\. (.*)/s);
  const title = element("h2", chosen.map((entry) => entry.system).join(" and "), { class: "hidden" });
  const verdict = element("p", parts[1] ? `${parts[0]}.` : parts[0], { class: "verdict" });
  const about = element("p", parts[1] || "", { class: "about" });
  const shown = [title, verdict, about];
  if (parts[1]) {
    const plot = element("div", "", { class: "board-plot" });
    const rows = element("ul", "", { class: "intervals" });
    rows.append(...chosen.map(drawRow));
    plot.append(rows, drawAxis(chosen[0].ticks));
    shown.push(plot);
  }
  target.replaceChildren(...shown, scoreTable(chosen));
  for (const entry of chosen) {
    for (const finding of entry.findings) {
      target.append(element("p", `${entry.system}: ${finding}.`, { class: "caution-box" }));
    }
  }
  target.hidden = false;
}

function startComparison(form) {
  const target = document.getElementById("comparison");
  const { first, second } = form.elements;
  const show = () => showComparison([entries.get(first.value), entries.get(second.value)], target);
  const fromAddress = () => {
    const [one, two] = decodeURIComponent(location.hash.slice(1)).split("+");
    const [best, next] = entries.keys();
    first.value = entries.has(one) ? one : best;
    second.value = entries.has(two) ? two : next || best;
    show();
  };
  form.addEventListener("change", () => {
    history.replaceState(null, "", `#${first.value}+${second.value}`);
    show();
  });
  addEventListener("hashchange", fromAddress);
  form.hidden = false;
  fromAddress();
}

// Checking two names of plots shows their test in the tray.
function startTray(tray) {
  const chosen = [];
  const boxes = new Map();
  const [said, link, clear] = tray.children;
  const show = () => {
    tray.hidden = chosen.length === 0;
    link.hidden = chosen.length < 2;
    const names = chosen.map((id) => entries.get(id).system);
    if (chosen.length < 2) said.textContent = `${names[0] || ""}: check a second system to compare.`;
    else said.textContent = explainPair(...chosen);
    link.href = `compare.html#${chosen.join("+")}`;
  };
  const choose = (id, checked) => {
    if (checked) chosen.push(id);
    else chosen.splice(chosen.indexOf(id), 1);
    if (chosen.length > 2) boxes.get(chosen.shift()).checked = false;
    show();
  };
  for (const row of document.querySelectorAll(".board-plot li[data-id]")) {
    const id = row.dataset.id;
    if (!entries.has(id)) continue;
    const box = element("input", "", { type: "checkbox", autocomplete: "off" });
    box.setAttribute("aria-label", `Compare ${entries.get(id).system}`);
    box.addEventListener("change", () => choose(id, box.checked));
    boxes.set(id, box);
    row.querySelector(".name").prepend(box);
  }
  clear.addEventListener("click", () => {
    for (const id of chosen.splice(0)) boxes.get(id).checked = false;
    show();
  });
}

const tables = [...document.querySelectorAll("table.board")];
tables.forEach(makeSortable);
const filters = document.querySelector("form.filters");
if (filters) {
  filters.hidden = false;
  filters.addEventListener("input", () => filterRows(filters, tables));
  filters.addEventListener("submit", (event) => event.preventDefault());
}
if (matchMedia("(max-width: 640px)").matches) {
  for (const long of document.querySelectorAll("[data-older], .numbers")) long.open = false;
}
const tray = document.querySelector(".tray");
if (tray) startTray(tray);
const comparison = document.getElementById("compare");
if (comparison) startComparison(comparison);
